/**
 * Reads the JSON of `vllm bench serve --save-result --save-detailed`. Times are seconds; starts are on a clock of the process.
 * vLLM writes `date` when all requests have ended, so the last end is dated with it.
 */
import { Failure } from '../../../errors.ts';
import { FIRST_EPOCH_MS } from '../../schema/milliseconds.ts';
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

export function isVllmBench(value: unknown): boolean {
  return isFields(value) && ('input_lens' in value || ('request_throughput' in value && 'model_id' in value));
}

const ARRAYS = ['input_lens', 'output_lens', 'ttfts', 'start_times'] as const;

export function* readVllmBench(value: unknown, context: BenchmarkContext): Generator<BenchmarkRow> {
  const result = value as Fields;
  const rows = Array.from({ length: checkArrays(result) }, (_, i) =>
    toRow({ line: i + 1, place: `request ${i}` }, () => readRequest(result, i, context)),
  );
  const originMs = findOrigin(result, rows);
  for (const row of rows) yield row.record === undefined ? row : { ...row, record: moveBy(originMs, row.record) };
}

/** Reads a request with times on the clock of the document. */
function readRequest(result: Fields, i: number, context: BenchmarkContext): RequestRecord {
  if (itemOf(result, 'errors', i)) throw refuse('the request failed');
  const startMs = readNumber(itemOf(result, 'start_times', i), 'start_times[]') * 1000;
  const ttftMs = readTtft(itemOf(result, 'ttfts', i), 'ttfts[]') * 1000;
  return {
    ...nameServer(context),
    ...(typeof result.model_id === 'string' ? { target_model: result.model_id } : {}),
    start_ms: startMs,
    first_token_ms: startMs + ttftMs,
    end_ms: startMs + readLatencyMs(result, i, ttftMs),
    input_tokens: readNumber(itemOf(result, 'input_lens', i), 'input_lens[]'),
    output_tokens: readNumber(itemOf(result, 'output_lens', i), 'output_lens[]'),
  };
}

function moveBy(ms: number, { start_ms, first_token_ms, end_ms, ...record }: RequestRecord): RequestRecord {
  return { ...record, start_ms: start_ms + ms, first_token_ms: first_token_ms + ms, end_ms: end_ms + ms };
}

/** With the latency, TPOT is (latency − ttft) ÷ (output tokens − 1). Versions without `latencies` have the gaps between tokens. */
function readLatencyMs(result: Fields, i: number, ttftMs: number): number {
  if (result.latencies !== undefined) return readNumber(itemOf(result, 'latencies', i), 'latencies[]') * 1000;
  const gaps = itemOf(result, 'itls', i);
  if (!Array.isArray(gaps)) throw refuse('latencies[] or itls[] must be present');
  return ttftMs + gaps.reduce((sum: number, gap) => sum + readNumber(gap, 'itls[][]'), 0) * 1000;
}

function itemOf(result: Fields, name: string, i: number): unknown {
  const list = result[name];
  return Array.isArray(list) ? list[i] : undefined;
}

/** Returns the number of requests. Throws unless all arrays are present and equally long. */
function checkArrays(result: Fields): number {
  for (const name of ARRAYS)
    if (!Array.isArray(result[name]))
      throw new Failure(
        'invalid',
        `Cannot read vllm-bench: ${name} must be an array; write the file with --save-result --save-detailed, by a vLLM that writes it`,
      );
  const lengths = ARRAYS.map((name) => (result[name] as unknown[]).length);
  const odd = ARRAYS.find((_, i) => lengths[i] !== lengths[0]);
  if (odd !== undefined)
    throw new Failure('invalid', `Cannot read vllm-bench: ${odd} must have as many entries as input_lens`);
  return lengths[0]!;
}

const DATE = /^(\d{4})(\d{2})(\d{2})-(\d{2})(\d{2})(\d{2})$/;

/** Returns what to add to a time for milliseconds since the epoch; 0 if times are that already, or the document has no date. */
function findOrigin({ date }: Fields, rows: readonly BenchmarkRow[]): number {
  const lastMs = rows.reduce(
    (latest, { record }) => Math.max(latest, record?.end_ms ?? latest),
    Number.NEGATIVE_INFINITY,
  );
  const [, ...parts] = DATE.exec(typeof date === 'string' ? date : '') ?? [];
  if (lastMs >= FIRST_EPOCH_MS || parts.length === 0) return 0;
  const [year, month, day, hour, minute, second] = parts.map(Number);
  return Date.UTC(year!, month! - 1, day, hour, minute, second) - lastMs;
}
