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

/** The whole answer of a call that fails before its headers were sent ("Trailers-Only" in gRPC's specification). */
export function encodeFailureResponse(status: GrpcStatus): Buffer {
  return encodeHeaderBlock([...START, ...listStatusFields(status)]);
}

function listStatusFields({ code, details, retryAfterMs }: GrpcStatus): readonly HeaderField[] {
  const fields: HeaderField[] = [['grpc-status', String(code)]];
  if (details !== '') fields.push(['grpc-message', encodeGrpcMessage(details)]);
  if (retryAfterMs !== undefined) fields.push(['grpc-retry-pushback-ms', String(retryAfterMs)]);
  return fields;
}

/**
 * Some clients refuse header sections above 8 KB, and one above 16 KB would need a frame that clients reject by ending the connection,
 * which a proxy shares among its clients.
 */
const MAX_MESSAGE_BYTES = 4096;
const TO_ENCODE = /[^\x20-\x24\x26-\x7e]+/g;
const ENCODED_BYTES = Array.from({ length: 256 }, (_, byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`);
/** Matches around a position inside a character: within an escape, or before a continuation byte of UTF-8. */
const IS_WITHIN = /^(?:%|.%|..%[89AB])/;

/** Percent-encodes the bytes outside of printable ASCII, as `grpc-message` requires. A long message is cut off after a whole character. */
function encodeGrpcMessage(text: string): string {
  const encoded = text.slice(0, MAX_MESSAGE_BYTES).replace(TO_ENCODE, percentEncode);
  if (encoded.length <= MAX_MESSAGE_BYTES) return encoded;
  let end = MAX_MESSAGE_BYTES;
  while (IS_WITHIN.test(encoded.slice(end - 2, end + 2))) end -= 1;
  return encoded.slice(0, end);
}

function percentEncode(text: string): string {
  let encoded = '';
  for (const byte of Buffer.from(text, 'utf8')) encoded += ENCODED_BYTES[byte];
  return encoded;
}
