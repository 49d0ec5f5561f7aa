/** Reads the CSV of LMBench and fmperf. */
import {
  type BenchmarkContext,
  type BenchmarkRow,
  type Fields,
  isFields,
  nameServer,
  type RequestRecord,
  readNumber,
  readTtft,
  refuse,
  toRow,
} from './row.ts';

export function isLmbench(value: unknown): boolean {
  return isFields(value) && ['ttft', 'generation_time', 'launch_time', 'finish_time'].every((name) => name in value);
}

export function readLmbench(value: unknown, context: BenchmarkContext): BenchmarkRow[] {
  return [toRow({ line: context.line }, () => toRecord(value as Fields, context))];
}

/** The largest difference, as a share of the end-to-end time or of one second, if longer. Above it, units or clocks differ. */
const TOLERANCE = 0.1;

function toRecord(row: Fields, context: BenchmarkContext): RequestRecord {
  const ttft = readTtft(row.ttft, 'ttft');
  const latency = ttft + readNumber(row.generation_time, 'generation_time');
  const launch = readNumber(row.launch_time, 'launch_time');
  const elapsed = readNumber(row.finish_time, 'finish_time') - launch;
  if (Math.abs(elapsed - latency) > TOLERANCE * Math.max(1, latency))
    throw refuse('finish_time − launch_time must be ttft + generation_time, all in seconds');
  return {
    ...nameServer(context),
    start_ms: launch * 1000,
    first_token_ms: (launch + ttft) * 1000,
    end_ms: (launch + latency) * 1000,
    input_tokens: readNumber(row.prompt_tokens, 'prompt_tokens'),
    output_tokens: readNumber(row.generation_tokens, 'generation_tokens'),
  };
}
