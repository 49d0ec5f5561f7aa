import { readFileSync } from 'node:fs';
import { createRandom } from '../../src/prediction/gbdt/random.ts';

/** Columns and a target; the first `trainRows` are learned from, the rest are held out. */
export interface Problem {
  readonly title: string;
  readonly columns: readonly Float32Array[];
  readonly target: Float64Array;
  readonly trainRows: number;
}

/** Logarithms of first-token times of a made-up server under load, with noise and eleven features. */
export function generateProblem(trainRows: number, testRows: number): Problem {
  const random = createRandom(20);
  const count = trainRows + testRows;
  const columns = Array.from({ length: 11 }, () => new Float32Array(count));
  const target = new Float64Array(count);
  for (let row = 0; row < count; row++) {
    const load = random();
    const length = Math.round(20 * Math.exp(6 * random()));
    const prefix = random() < 0.5 ? 0 : random();
    const running = Math.round(60 * load * (0.5 + random()));
    const waiting = load < 0.6 ? 0 : Math.round(200 * (load - 0.6) * random());
    const kv = Math.min(1, 0.015 * running + 0.1 * random());
    const inflight = waiting * Math.round(2000 * random()) + running * 50;
    const effective = length * (1 - prefix);
    [length, prefix, waiting, running, kv, inflight, load, random(), random(), effective, effective + inflight].forEach(
      (value, feature) => {
        columns[feature]![row] = value;
      },
    );
    const time = 25 + 0.08 * effective + 0.01 * inflight + 2 * running + (kv > 0.8 ? 400 * (kv - 0.8) * waiting : 0);
    target[row] = Math.log(time) + 0.3 * (random() + random() + random() - 1.5);
  }
  return { title: `generated: ${trainRows} rows, ${testRows} held out`, columns, target, trainRows };
}

const TRACE_FEATURES = [
  'input_token_length',
  'prefix_cache_score',
  'num_request_waiting',
  'num_request_running',
  'kv_cache_percentage',
  'prefill_tokens_in_flight',
  'decode_tokens_in_flight',
];

/** The rows of an llm-d trace (JSON lines) with a first-token time; every tenth is held out. */
export function readTrace(path: string): Problem {
  const rows = readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, number>)
    .filter((row) => row.actual_ttft_ms! > 0);
  const heldOut = rows.filter((_, i) => i % 10 === 3);
  const learned = rows.filter((_, i) => i % 10 !== 3);
  const ordered = [...learned, ...heldOut];
  return {
    title: `${path}: ${learned.length} rows, ${heldOut.length} held out, ln TTFT`,
    columns: TRACE_FEATURES.map((name) => Float32Array.from(ordered, (row) => row[name] ?? 0)),
    target: Float64Array.from(ordered, (row) => Math.log(row.actual_ttft_ms!)),
    trainRows: learned.length,
  };
}
