/** Encodes the header and trailer sections of an answer, with its status and message, as HPACK blocks. */
import { encodeHeaderBlock } from '../hpack/hpack-encoder.ts';
import { ACCEPTED_ENCODINGS } from './decompressor.ts';
import type { GrpcStatus } from './status.ts';

type HeaderField = readonly [name: string, value: string];

const START: readonly HeaderField[] = [
  [':status', '200'],
  ['content-type', 'application/grpc'],
  ['grpc-accept-encoding', ACCEPTED_ENCODINGS],
];

/** The headers of every answer that has a message. */
export const RESPONSE_HEADERS = encodeHeaderBlock(START);
export const OK_TRAILERS = encodeHeaderBlock([['grpc-status', '0']]);

/** The trailers of a call that fails after its headers were sent. */
export function encodeFailureTrailers(status: GrpcStatus): Buffer {
  return encodeHeaderBlock(listStatusFields(status));
}

/** The whole answer of a call that fails before its headers were sent: "Trailers-Only" in the words of gRPC. */
export function encodeFailureResponse(status: GrpcStatus): Buffer {
  return encodeHeaderBlock([...START, ...listStatusFields(status)]);
}

function listStatusFields({ code, details, retryAfterMs }: GrpcStatus): readonly HeaderField[] {
  const fields: HeaderField[] = [['grpc-status', String(code)]];
  if (details !== '') fields.push(['grpc-message', encodeGrpcMessage(details)]);
  if (retryAfterMs !== undefined) fields.push(['grpc-retry-pushback-ms', String(retryAfterMs)]);
  return fields;
}

/** Percent-encodes the bytes outside of printable ASCII, as `grpc-message` requires. */
function encodeGrpcMessage(text: string): string {
  return text.replace(/[^\x20-\x24\x26-\x7e]+/g, (part) =>
    [...Buffer.from(part, 'utf8')].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
  );
}
