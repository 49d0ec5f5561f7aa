/** Processes of the service that predict with one model, and clients that ask for predictions and report times. */
import assert from 'node:assert/strict';
import { packModel, publishModel } from '../../../src/prediction/registry/publish-model.ts';
import type { Observation } from '../../../src/prediction/schema/observation.ts';
import { DEFAULT_TRAINING, trainModel } from '../../../src/prediction/training/train-model.ts';
import { realWorld } from '../../../src/world.ts';
import { waitUntil } from '../basics/wait-until.ts';
import { type Program, type ProgramEnvironment, startProgram } from '../programs/start-program.ts';
import { openTestStore, type StorePlace } from '../store/engines.ts';
import { observePool, tabulate } from './observed-pool.ts';

const parameters = { ...DEFAULT_TRAINING, trees: { ...DEFAULT_TRAINING.trees, trees: 30 } };
const model = trainModel('m@1', tabulate(observePool({ rows: 500, servers: [1, 1, 1] })), parameters);
export const environment = {
  PREDICTION_LEARNING: 'false',
  LOG_LEVEL: 'silent',
  SECRET_KEYS: Buffer.alloc(32, 7).toString('base64'),
};

export async function publishTestModel(place: StorePlace): Promise<void> {
  await using store = await openTestStore(place);
  const details = { name: 'm', packed: packModel(model), source: {}, reason: 'for the test', nowMs: Date.now() };
  await publishModel(store, { ...details, promotion: 'promote' });
}

async function call(program: Program, method: string, body: object): Promise<Record<string, unknown>> {
  const response = await fetch(`${program.httpUrl}/${method}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const json = (await response.json()) as Record<string, unknown>;
  assert.equal(response.status, 200, JSON.stringify(json));
  return json;
}

let reported = 0;

export async function report(program: Program, rows: readonly Observation[]): Promise<void> {
  const events = rows.map(({ targetModel, input, ttftMs, tpotMs }) => ({
    observation: { requestId: `r${reported++}`, targetModel, input, ttftMillis: ttftMs, tpotMillis: tpotMs },
  }));
  const { accepted } = await call(program, 'observation.v1.ObservationService/ReportBatch', { events });
  assert.equal(Number(accepted), rows.length);
}

/** TTFT of each row, as the program predicts it. */
export async function predict(program: Program, rows: readonly Observation[]): Promise<number[]> {
  const inputs = rows.map(({ input }, inputId) => ({ inputId, ...input }));
  const answer = await call(program, 'prediction.v1.PredictionService/Predict', { targetModel: 'm', inputs });
  return (answer.outputs as { predictedTtftMillis: number }[]).map((output) => output.predictedTtftMillis);
}

export async function readMetrics(program: Program): Promise<(series: string) => number> {
  const text = await (await fetch(`${program.httpUrl}/metrics`)).text();
  return (series) =>
    Number(
      text
        .split('\n')
        .find((line) => line.startsWith(`${series} `))
        ?.split(' ')[1] ?? 0,
    );
}

/** Waits until all processes have read the same rows, with every report in them. Returns how long that took. */
export async function converge(programs: readonly Program[]): Promise<number> {
  const beganMs = realWorld.monotonicMs();
  return await waitUntil(async () => {
    const metrics = await Promise.all(programs.map(readMetrics));
    const sequences = new Set(metrics.map((read) => read('trivet_prediction_shared_sequence')));
    const pending = metrics.some((read) => read('trivet_prediction_shared_pending_groups') > 0);
    return sequences.size === 1 && !pending && realWorld.monotonicMs() - beganMs;
  });
}

export async function startPredictors(undo: AsyncDisposableStack, count: number, of: ProgramEnvironment) {
  const programs: Program[] = [];
  // Each is given up with the test as soon as it runs, also when a later one does not start.
  for (let i = 0; i < count; i++) programs.push(undo.use(await startProgram({ ...environment, ...of })));
  return programs;
}
