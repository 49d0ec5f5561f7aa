/** Reads `profile_export.jsonl` of AIPerf and GenAI-Perf. */
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
  readTtft,
  refuse,
  toRow,
} from './row.ts';

export function isAiperf(value: unknown): boolean {
  return isFields(value) && isFields(value.metadata) && 'request_start_ns' in value.metadata;
}

export function readAiperf(value: unknown, context: BenchmarkContext): BenchmarkRow[] {
  return [toRow({ line: context.line }, () => toRecord(readFields(value, 'the line'), context))];
}

function toRecord(line: Fields, context: BenchmarkContext): RequestRecord {
  const metadata = readFields(line.metadata, 'metadata');
  if (metadata.was_cancelled === true) throw refuse('the request was cancelled');
  if (line.error !== undefined && line.error !== null) throw refuse('the request failed');
  const phase = metadata.benchmark_phase ?? 'profiling';
  if (phase !== 'profiling')
    throw refuse('the request is of the warm-up, metadata.benchmark_phase must be "profiling"');
  const metrics = readFields(line.metrics, 'metrics');
  const startMs = readNumber(metadata.request_start_ns, 'metadata.request_start_ns') / 1e6;
  const ttftMs = readTtft(readTimeMs(metrics, 'time_to_first_token'), 'metrics.time_to_first_token.value');
  return {
    ...nameServer(context),
    start_ms: startMs,
    first_token_ms: startMs + ttftMs,
    end_ms: startMs + readTimeMs(metrics, 'request_latency'),
    input_tokens: readMetric(metrics, 'input_sequence_length'),
    output_tokens: readMetric(metrics, 'output_sequence_length'),
  };
}

const UNIT_MS = new Map<unknown, number>([
  ['ns', 1e-6],
  ['us', 1e-3],
  ['ms', 1],
  ['s', 1000],
  ['sec', 1000],
  ['seconds', 1000],
]);

function readTimeMs(metrics: Fields, name: string): number {
  const value = readMetric(metrics, name);
  const unitMs = UNIT_MS.get(readOptionalFields(metrics[name]).unit);
  if (unitMs === undefined) throw refuse(`metrics.${name}.unit must be ns, us, ms or s`);
  return value * unitMs;
}

function readMetric(metrics: Fields, name: string): number {
  const place = `metrics.${name}`;
  return readNumber(readFields(metrics[name], place).value, `${place}.value`);
}
