/**
 * Reads the JSON of `vllm bench serve --save-result --save-detailed`. Times are seconds; starts are on a clock of the process,
 * so the first is put at the document's `date`.
 */
import { Failure } from '../../../errors.ts';
import {
  type BenchmarkContext,
  type BenchmarkRow,
  type Fields,
  isFields,
  nameServer,
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
  const count = checkArrays(result);
  const originMs = findOrigin(result);
  for (let i = 0; i < count; i++)
    yield toRow({ line: i + 1, place: `request ${i}` }, () => {
      if (itemOf(result, 'errors', i)) throw refuse('the request failed');
      const startMs = originMs + readNumber(itemOf(result, 'start_times', i), `start_times[]`) * 1000;
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
    });
}

/** TPOT is then (latency − ttft) ÷ (output tokens − 1). Versions without `latencies` have the gaps between tokens. */
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

/** How many requests there are. Throws unless the arrays are there and equally long. */
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
/** A smaller start is not a time since the epoch, in seconds. */
const FIRST_EPOCH_SECONDS = 1e8;

/** Returns what turns a start into milliseconds since the epoch; 0 when the starts are that, or the document has no date. */
function findOrigin(result: Fields): number {
  const starts = (result.start_times as unknown[]).filter((start) => typeof start === 'number');
  const first = starts.reduce((least, start) => Math.min(least, start), Number.POSITIVE_INFINITY);
  const [, ...parts] = DATE.exec(typeof result.date === 'string' ? result.date : '') ?? [];
  if (first >= FIRST_EPOCH_SECONDS || parts.length === 0) return 0;
  const [year, month, day, hour, minute, second] = parts.map(Number);
  return Date.UTC(year!, month! - 1, day, hour, minute, second) - first * 1000;
}
