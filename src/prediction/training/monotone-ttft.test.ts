/** Candidates are compared by TTFT: whatever was learned, more work ahead of a request never predicts an earlier first token. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectRaw, type RawClient } from '../../../test/support/grpc/grpc-client.ts';
import {
  decodeMessage,
  encodeMessage,
  PredictRequest,
  PredictResponse,
} from '../../../test/support/grpc/proto-messages.ts';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { simulatePool } from '../../../test/support/prediction/simulated-pool.ts';
import { openGrpcServer } from '../../grpc/listener/server.ts';
import { createLog } from '../../telemetry/log.ts';
import { createMetrics } from '../../telemetry/metrics.ts';
import { realWorld } from '../../world.ts';
import { createPredictionService } from '../api/prediction-service.ts';
import { STATISTICS, type Statistic } from '../model/calibration.ts';
import { createPredictor } from '../online/predictor.ts';
import { fillMetrics } from '../schema/input-fields.ts';
import type { Observation } from '../schema/observation.ts';
import { createRandom } from '../simulator/random-draws.ts';
import { GPUS } from '../simulator/step-time.ts';
import { DEFAULT_TRAINING, trainModel } from './train-model.ts';

type Input = Observation['input'];

const STEPS = 96;
const listValues = (highest: number) =>
  Array.from({ length: STEPS }, (_, i) => Math.floor((highest * i ** 2) / (STEPS - 1) ** 2));

/** Values of an input, rising, and whether TTFT may only rise or only fall with it. */
const SWEEPS: readonly [name: keyof Input, sign: number, values: readonly number[]][] = [
  ['inputTokenLength', 1, listValues(40_000)],
  ['prefixCacheScore', -1, Array.from({ length: STEPS }, (_, i) => i / (STEPS - 8))],
  ['numRequestWaiting', 1, Array.from({ length: STEPS }, (_, i) => i)],
  ['inflightTokens', 1, listValues(300_000)],
];
const BASE_ROWS = 12;
/** What the rounding of a logarithm and its exponential may cost. */
const ROUNDING = 1e-9;

/** A pool of two unlike servers, as the simulator makes it. */
function simulateRows(): Observation[] {
  const observations = simulatePool({
    gpus: [GPUS[0]!, GPUS[2]!],
    seed: 4,
    durationMs: 250_000,
    requestsPerSecondEach: 2,
  });
  return observations.map(({ candidate, outcome, ttftMs, tpotMs }) => ({
    targetModel: 'm',
    input: { podType: '', serverIp: candidate.server, ...fillMetrics(() => 0), ...candidate },
    atMs: outcome.dispatchedMs,
    ttftMs,
    tpotMs,
  }));
}

/** Every load is as likely as every other, and has the time that `time` computes. */
function inventRows(seed: number, time: (input: Input, random: () => number) => number): Observation[] {
  const random = createRandom(seed);
  return observePool({ rows: 1200, seed, servers: [1, 2] }).map((row) => {
    const input = {
      ...row.input,
      inputTokenLength: Math.floor(8000 * random()),
      prefixCacheScore: random(),
      numRequestWaiting: Math.floor(30 * random()),
      inflightTokens: Math.floor(100_000 * random()),
    };
    return { ...row, input, ttftMs: time(input, random) };
  });
}

const learned: readonly [title: string, rows: readonly Observation[]][] = [
  ['a simulated pool', simulateRows()],
  ['times that have nothing to do with the load', inventRows(1, (_, random) => Math.exp(2 + 5 * random()))],
  [
    'times that fall with the load and rise with the cached share',
    inventRows(
      2,
      (input, random) =>
        (100 * (1 + random()) * (0.2 + input.prefixCacheScore)) /
        (0.1 + input.numRequestWaiting / 30 + input.inputTokenLength / 8000 + input.inflightTokens / 100_000),
    ),
  ],
  [
    'times that scatter at a low load only',
    inventRows(3, (input, random) =>
      input.numRequestWaiting < 10 ? Math.exp(2 + 3 * random()) : 100 * input.numRequestWaiting * (1 + random() / 50),
    ),
  ],
];

for (const [title, rows] of learned)
  for (const statistic of STATISTICS)
    test(`Predict of a ${statistic} learned from ${title} is ordered as the work ahead is`, async () => {
      await using served = await serveModel(rows, statistic);
      await checkOrder(served.client, rows);
      // Later reports change the mixture, the mean residuals and the quantiles.
      served.observe(rows.slice(-300));
      await checkOrder(served.client, rows);
    });

async function serveModel(rows: readonly Observation[], statistic: Statistic) {
  const predictor = createPredictor();
  predictor.swap('m', trainModel('m@1', tabulate(rows), { ...DEFAULT_TRAINING, statistic }));
  const dependencies = { predictor, unknownModel: 'reject', metrics: createMetrics(), world: realWorld } as const;
  const server = await openGrpcServer({
    services: createPredictionService(dependencies).grpc,
    host: '127.0.0.1',
    port: 0,
    maxMessageBytes: 1_000_000,
    log: createLog('silent'),
    metrics: dependencies.metrics,
    world: realWorld,
  });
  const client = connectRaw(`127.0.0.1:${server.port}`);
  return {
    client,
    observe(observed: readonly Observation[]) {
      const live = predictor.live('m');
      for (const row of observed) {
        const forecast = live.forecast(tabulate([row]), row.input.podType, Buffer.from(row.input.serverIp));
        live.observe(forecast, 'ttft', { observedMs: row.ttftMs! });
      }
    },
    async [Symbol.asyncDispose]() {
      client[Symbol.dispose]();
      await server.drain(1000);
    },
  };
}

async function checkOrder(client: RawClient, rows: readonly Observation[]): Promise<void> {
  const random = createRandom(9);
  for (let base = 0; base < BASE_ROWS; base++) {
    const { input } = rows[Math.floor(random() * rows.length)]!;
    for (const [name, sign, values] of SWEEPS) {
      const times = await predictTtft(
        client,
        values.map((value) => ({ ...input, [name]: value })),
      );
      for (let i = 1; i < times.length; i++) {
        const step = sign * (times[i]! / times[i - 1]! - 1);
        assert.ok(step >= -ROUNDING, `${name} ${values[i - 1]} to ${values[i]}: ${times[i - 1]} to ${times[i]} ms`);
      }
    }
  }
}

async function predictTtft(client: RawClient, inputs: readonly object[]): Promise<number[]> {
  const request = encodeMessage(PredictRequest, { targetModel: 'm', inputs });
  const answer = await client.unary('/prediction.v1.PredictionService/Predict', request);
  const { outputs } = decodeMessage<{ outputs: { predictedTtftMillis: number }[] }>(PredictResponse, answer);
  return outputs.map((output) => output.predictedTtftMillis);
}
