/** Reads inference-perf's `per_request_lifecycle_metrics.json`. Times are seconds. */
import {
  type BenchmarkContext,
  type BenchmarkRow,
  type Fields,
  isFields,
  nameServer,
  type RequestRecord,
  readFields,
  readNumber,
  readOptionalFields,
  refuse,
  toRow,
} from './row.ts';

export function isInferencePerf(value: unknown): boolean {
  if (!Array.isArray(value)) return false;
  const first: unknown = value[0];
  return isFields(first) && 'start_time' in first && 'end_time' in first && 'info' in first;
}

export function* readInferencePerf(value: unknown, context: BenchmarkContext): Generator<BenchmarkRow> {
  for (const [i, request] of (value as unknown[]).entries())
    yield toRow({ line: i + 1, place: `[${i}]` }, () => toRecord(readFields(request, 'the request'), context));
}

function toRecord(request: Fields, context: BenchmarkContext): RequestRecord {
  if (request.error !== undefined && request.error !== null) throw refuse('the request failed');
  const info = readFields(request.info, 'info');
  // Older versions write the fields of the answer into `info` itself.
  const response = isFields(info.response_metrics) ? info.response_metrics : info;
  const startMs = readNumber(request.start_time, 'start_time') * 1000;
  const { firstMs, lastMs } = readTokenTimes(response.output_token_times);
  const outputTokens = readNumber(response.output_tokens, 'info.response_metrics.output_tokens');
  return {
    ...nameServer(context),
    ...(typeof info.lora_adapter === 'string' ? { target_model: info.lora_adapter } : {}),
    start_ms: startMs,
    first_token_ms: firstMs,
    // The last token, and not the end of the answer: usage and end marker come between them.
    end_ms: outputTokens > 1 ? lastMs : Math.max(lastMs, readNumber(request.end_time, 'end_time') * 1000),
    input_tokens: readInputTokens(info),
    output_tokens: outputTokens,
  };
}

function readTokenTimes(times: unknown): { readonly firstMs: number; readonly lastMs: number } {
  const name = 'info.response_metrics.output_token_times';
  if (!Array.isArray(times) || times.length === 0) throw refuse(`${name} must have a time: was the request streamed?`);
  return { firstMs: readNumber(times[0], name) * 1000, lastMs: readNumber(times.at(-1), name) * 1000 };
}

function readInputTokens(info: Fields): number {
  const { text } = readOptionalFields(info.request_metrics);
  return readNumber(
    readOptionalFields(text).input_tokens ?? info.input_tokens,
    'info.request_metrics.text.input_tokens',
  );
}
