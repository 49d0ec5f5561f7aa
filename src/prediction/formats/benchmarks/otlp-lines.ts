/** Reads spans of vLLM from the file of an OpenTelemetry collector, one export in JSON on each line. */
import { isFailure } from '../../../errors.ts';
import { isOtlpJson, readOtlpJson } from '../spans/otlp-json.ts';
import { parseRequestSpan, SERVER_MISSING } from '../spans/request-span.ts';
import type { Span } from '../spans/span.ts';
import type { BenchmarkContext, BenchmarkRow } from './row.ts';

export const isOtlpLine: (value: unknown) => boolean = isOtlpJson;

/** Skips spans that are not of a request of vLLM. */
export function* readOtlpLine(value: unknown, context: BenchmarkContext): Generator<BenchmarkRow> {
  const { line } = context;
  try {
    let index = 0;
    for (const span of readOtlpJson(value)) {
      const row = toRow(span, { ...context, line }, `${line}, span ${index++}`);
      if (row !== undefined) yield row;
    }
  } catch (error) {
    if (!isFailure(error)) throw error;
    yield { line, record: undefined, problem: error.message.replaceAll(/\[\d+\]/g, '[]') };
  }
}

function toRow(span: Span, { run, server, line }: BenchmarkContext, place: string): BenchmarkRow | undefined {
  const parsed = parseRequestSpan(span);
  if (parsed === undefined) return undefined;
  if ('refusal' in parsed) return { line, place, record: undefined, problem: parsed.refusal };
  const { request } = parsed;
  const name = server || request.server;
  if (name === '')
    return {
      line,
      place,
      record: undefined,
      problem: `${SERVER_MISSING}; or --server must`,
    };
  const record = {
    run,
    server: name,
    server_ip: name,
    ...(request.targetModel === '' ? {} : { target_model: request.targetModel }),
    start_ms: request.startMs,
    first_token_ms: request.firstTokenMs,
    end_ms: request.endMs,
    input_tokens: request.inputTokens,
    cached_tokens: request.cachedTokens,
    output_tokens: request.outputTokens,
  };
  return { line, place, record };
}
