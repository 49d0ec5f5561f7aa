/**
 * Measures what online learning costs the serving thread: a Predict of many candidates with and without server state, adding one
 * observed time to that state, and the swap of a model. `node bench/live.ts [--json] [--candidates 64]`.
 * Figures are processor time of the process: the least of all rounds, after a warm-up, since other programs can only add to it.
 */
import { cpus } from 'node:os';
import { createAccuracyRecorder } from '../src/prediction/live-accuracy/accuracy-recorder.ts';
import { createLiveModel, type LiveModel } from '../src/prediction/online/live-model.ts';
import { createPredictColumns, METRIC_COLUMNS, type PredictColumns } from '../src/prediction/schema/columns.ts';
import { trainSyntheticModel } from './predict/trained-predictor.ts';
import { readBenchFlags } from './support/bench-flags.ts';

const { values: flags } = readBenchFlags({
  options: { json: { type: 'boolean', default: false }, candidates: { type: 'string', default: '64' } },
});
const CANDIDATES = Number(flags.candidates);
const SERVERS = 64;
const ROUNDS = 15;

function measureMicros(repetitions: number, work: (i: number) => void): number {
  for (let i = 0; i < repetitions; i++) work(i);
  const rounds = Array.from({ length: ROUNDS }, () => {
    const before = process.cpuUsage();
    for (let i = 0; i < repetitions; i++) work(i);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / repetitions;
  });
  return Math.min(...rounds);
}

function createCall(): PredictColumns {
  const columns = createPredictColumns(CANDIDATES);
  columns.count = CANDIDATES;
  columns.podTypes = ['decode'];
  const addresses = Array.from({ length: CANDIDATES }, (_, i) => `10.12.0.${i % SERVERS}`);
  columns.source = Buffer.from(addresses.join(''));
  let start = 0;
  for (let i = 0; i < CANDIDATES; i++) {
    METRIC_COLUMNS.forEach((name, m) => {
      columns[name][i] = name === 'inputTokenLength' ? 1000 + i * 37 : ((i * (m + 3)) % 17) / 17;
    });
    columns.serverIpStart[i] = start;
    columns.serverIpLength[i] = addresses[i]!.length;
    start += addresses[i]!.length;
  }
  return columns;
}

function observeOnce(live: LiveModel, row: PredictColumns, i: number): void {
  row.inputTokenLength[0] = 500 + ((i * 71) % 3000);
  row.numRequestRunning[0] = i % 23;
  const forecast = live.forecast(row, 'decode', Buffer.from(`10.12.0.${i % SERVERS}`));
  const history = live.histories.ensure(forecast.key.server);
  history.begin(10 * i);
  history.dispatch(String(i), { atMs: 10 * i, tokens: 500 });
  history.firstToken(String(i - SERVERS), 10 * i);
  live.observe(forecast, 'ttft', { observedMs: 100 + ((i * 13) % 200) });
  live.observe(forecast, 'tpot', { observedMs: 10 + ((i * 7) % 12) });
}

const NOW_MS = Date.UTC(2026, 10, 22);
const ASKED = METRIC_COLUMNS.map((_, i) => i / 10);

/** Both times of a request, as the live accuracy collects them until it writes. */
function recordOnce(recorder: ReturnType<typeof createAccuracyRecorder>, i: number): void {
  const row = { targetModel: 'm', version: 1, podType: 'decode', server: `10.12.0.${i % SERVERS}`, metrics: ASKED };
  const nowMs = NOW_MS + 10 * (i % 1000);
  recorder.observe({ ...row, nowMs, target: 'ttft', predictedMs: 150, p90Ms: 220, observedMs: 100 + ((i * 13) % 200) });
  recorder.observe({ ...row, nowMs, target: 'tpot', predictedMs: 15, p90Ms: 19, observedMs: 10 + ((i * 7) % 12) });
}

const model = trainSyntheticModel(5000);
const other = trainSyntheticModel(4000);
const call = createCall();
const single = createPredictColumns(1);
single.count = 1;
const predicted = { ttftMs: new Float64Array(CANDIDATES), tpotMs: new Float64Array(CANDIDATES) };

const fresh = createLiveModel(model);
const staticMicros = measureMicros(2000, () => fresh.predict(call, predicted));
const live = createLiveModel(model);
const requestMicros = measureMicros(5000, (i) => observeOnce(live, single, i));
const liveMicros = measureMicros(2000, () => live.predict(call, predicted));
const streamMicros = measureMicros(2000, (i) => {
  observeOnce(live, single, i);
  live.predict(call, predicted);
});
const quantiles = createLiveModel({ ...model, statistic: 'p90' });
for (let i = 0; i < 2000; i++) observeOnce(quantiles, single, i);
const quantileMicros = measureMicros(2000, () => quantiles.predict(call, predicted));
const recorder = createAccuracyRecorder();
const recordMicros = measureMicros(5000, (i) => recordOnce(recorder, i));
const swapMicros = measureMicros(4, (i) => live.replaceModel(i % 2 === 0 ? other : model));

const rows = [
  { what: `predict ${CANDIDATES} rows, nothing observed`, micros: staticMicros },
  { what: `predict ${CANDIDATES} rows, live`, micros: liveMicros },
  { what: `predict ${CANDIDATES} rows, live, p90`, micros: quantileMicros },
  { what: 'forecast a request, observe its TTFT and TPOT', micros: requestMicros },
  { what: `the same, and then predict ${CANDIDATES} rows, live`, micros: streamMicros },
  { what: 'add its TTFT and TPOT to the live accuracy', micros: recordMicros },
  { what: 'swap the model', micros: swapMicros },
];
if (flags.json) process.stdout.write(`${JSON.stringify({ date: new Date().toISOString(), rows })}\n`);
else {
  process.stdout.write(`${cpus()[0]?.model ?? 'unknown'}, Node ${process.version}\n\n`);
  for (const { what, micros } of rows) process.stdout.write(`${micros.toFixed(1).padStart(9)} µs  ${what}\n`);
}
