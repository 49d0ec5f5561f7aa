/** Reads GuideLLM's JSON report. Times are seconds since the epoch. */
import { Failure } from '../../../errors.ts';
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

export function isGuidellm(value: unknown): boolean {
  return isFields(value) && Array.isArray(value.benchmarks);
}

/** The benchmarks of one report ran one after the other, so each is its own run. */
export function* readGuidellm(value: unknown, context: BenchmarkContext): Generator<BenchmarkRow> {
  let line = 0;
  for (const [b, benchmark] of ((value as Fields).benchmarks as unknown[]).entries()) {
    const { successful } = readOptionalFields(readOptionalFields(benchmark).requests);
    if (!Array.isArray(successful))
      throw new Failure('invalid', `Cannot read guidellm: benchmarks[${b}].requests.successful must be an array`);
    const run = `${context.run}#${b + 1}`;
    for (const [i, request] of successful.entries())
      yield toRow({ line: ++line, place: `benchmarks[${b}].requests.successful[${i}]` }, () =>
        toRecord(readFields(request, 'the request'), { ...context, run }),
      );
  }
}

function toRecord(request: Fields, context: BenchmarkContext): RequestRecord {
  const timings = readFields(readFields(request.info, 'info').timings, 'info.timings');
  const seconds = (name: string) => readNumber(timings[name], `info.timings.${name}`);
  if (isAbsent(timings.first_token_iteration))
    throw refuse('info.timings.first_token_iteration must be present: was the request streamed?');
  return {
    ...nameServer(context),
    ...(isAbsent(request.cached_tokens) ? {} : { cached_tokens: readNumber(request.cached_tokens, 'cached_tokens') }),
    start_ms: seconds('request_start') * 1000,
    first_token_ms: seconds('first_token_iteration') * 1000,
    // So TPOT is the `inter_token_latency_ms` of GuideLLM: its `time_per_output_token_ms` includes the wait for the first token.
    end_ms: seconds('last_token_iteration') * 1000,
    input_tokens: readNumber(request.prompt_tokens, 'prompt_tokens'),
    output_tokens: readNumber(request.output_tokens, 'output_tokens'),
  };
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}
