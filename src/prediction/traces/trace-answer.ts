/** Writes the answer of OTLP/HTTP, with the number of rejected spans. */
import { WireWriter } from '../../grpc/protobuf/wire-writer.ts';
import type { AcceptedSpans } from './learnable-spans.ts';
import type { TraceEncoding } from './trace-body.ts';

export interface TraceAnswer {
  readonly contentType: string;
  readonly body: string | Uint8Array<ArrayBuffer>;
}

/** Writes a partial success if spans were rejected: the collector logs why, and must not send them again. */
export function answerExport({ rejected, reason }: AcceptedSpans, encoding: TraceEncoding): TraceAnswer {
  if (encoding === 'json')
    return json(rejected === 0 ? {} : { partialSuccess: { rejectedSpans: String(rejected), errorMessage: reason } });
  const response = new WireWriter();
  if (rejected > 0) response.message(1, new WireWriter().count(1, rejected).string(2, reason));
  return protobuf(response);
}

function json(value: object): TraceAnswer {
  return { contentType: 'application/json', body: JSON.stringify(value) };
}

function protobuf(message: WireWriter): TraceAnswer {
  return { contentType: 'application/x-protobuf', body: new Uint8Array(message.finish()) };
}
