/** Serves a prepared answer through our transport, after arithmetic of a given duration. */
import { parseArgs } from 'node:util';
import { openGrpcServer } from '../../src/grpc/listener/server.ts';
import { createGarbageCounter, openCollector } from '../../src/memory/garbage.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { realWorld } from '../../src/world.ts';
import { createAnswer } from './messages.ts';
import { serveReadings } from './readings.ts';

const { values: flags } = parseArgs({ options: { candidates: { type: 'string', default: '64' } } });
const answer = createAnswer(Number(flags.candidates));
const CALIBRATION_ROUNDS = 200_000;

let rounds = 0;
const server = await openGrpcServer({
  services: [
    {
      name: 'prediction.v1.PredictionService',
      methods: [
        {
          kind: 'unary',
          name: 'Predict',
          handle: () => {
            work(rounds);
            return answer;
          },
        },
      ],
    },
  ],
  host: '127.0.0.1',
  port: 0,
  maxMessageBytes: 4_194_304,
  log: createLog('warn'),
  metrics: createMetrics(),
  world: realWorld,
  countGarbage: createGarbageCounter(openCollector().collectYoung),
});
const roundsPerMicro = calibrate();
serveReadings(server.port, (message) => {
  rounds = Math.round((message as { workMicros: number }).workMicros * roundsPerMicro);
});
process.once('SIGTERM', () => void server.drain(1000).then(() => process.exit(0)));

/** Allocates nothing and touches no memory, so that only the machine can delay it. */
function work(count: number): number {
  let value = 1;
  for (let round = 0; round < count; round++) value = Math.imul(value, 48_271) + round;
  return value;
}

/** Returns the fastest of many runs, since other programs can only slow a run. */
function calibrate(): number {
  let bestMs = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < 50; attempt++) {
    const startedMs = performance.now();
    work(CALIBRATION_ROUNDS);
    bestMs = Math.min(bestMs, performance.now() - startedMs);
  }
  return CALIBRATION_ROUNDS / (1000 * bestMs);
}
