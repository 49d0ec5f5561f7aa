/** The server under load: the transport, the codec, the service and a predictor, in a process of its own. */
import { existsSync, readFileSync } from 'node:fs';
import { PerformanceObserver } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { openGrpcServer } from '../../src/grpc/server.ts';
import type { Predictor } from '../../src/prediction/columns.ts';
import { createPredictionService } from '../../src/prediction/prediction-service.ts';
import { createPredictor } from '../../src/prediction/predictor.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { realWorld } from '../../src/world.ts';
import { openLearning } from './learning.ts';
import { createTrainedPredictor } from './trained-predictor.ts';

const { values: flags } = parseArgs({
  options: {
    model: { type: 'string', default: 'trained' },
    'while-refit': { type: 'boolean', default: false },
    samples: { type: 'string', default: '20000' },
  },
});

/** Of the first thread of this process: nanoseconds on a core, nanoseconds of waiting for one, turns. */
const SCHEDULE = '/proc/self/schedstat';

/** Costs nothing: what is left is transport, codec and service. */
const nothing: Predictor = {
  hasModel: () => true,
  predict: (_targetModel, columns, predicted) => {
    predicted.ttftMs.fill(123.456, 0, columns.count);
    predicted.tpotMs.fill(12.3456, 0, columns.count);
    return 'none@1';
  },
};

const PREDICTORS: Record<string, () => Predictor> = {
  none: () => nothing,
  prior: createPredictor,
  trained: createTrainedPredictor,
};

const metrics = createMetrics();
const log = createLog('warn');
const learning = flags['while-refit']
  ? await openLearning({ log, metrics, samples: Number(flags.samples) })
  : undefined;
const predictor = learning?.predictor ?? PREDICTORS[flags.model]?.();
if (predictor === undefined) throw new Error(`--model must be one of ${Object.keys(PREDICTORS).join(', ')}`);
const service = createPredictionService({ predictor, unknownModel: 'prior', metrics, world: realWorld });
const server = await openGrpcServer({
  services: [service.grpc],
  host: '127.0.0.1',
  port: 0,
  maxMessageBytes: 4_194_304,
  log,
  metrics,
  world: realWorld,
});
process.send?.({ port: server.port });
process.on('message', (message) => {
  if (message === 'refit') learning?.start();
  process.send?.({
    cpuMicros: readCpuMicros(),
    refits: learning?.refits() ?? 0,
    longestTurnMs: takeLongestTurn(),
    waitedMs: readWaitedMs(),
    collectedMs,
  });
});
process.once('SIGTERM', () => void stop().then(() => process.exit(0)));

async function stop(): Promise<void> {
  await server.drain(1000);
  learning?.removeData();
}

/** How long the collector made this thread wait. */
let collectedMs = 0;
new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) collectedMs += duration;
}).observe({ entryTypes: ['gc'] });

let longestTurnMs = 0;
let turnStartedMicros = readThreadMicros();
setInterval(() => {
  const nowMicros = readThreadMicros();
  longestTurnMs = Math.max(longestTurnMs, (nowMicros - turnStartedMicros) / 1000);
  turnStartedMicros = nowMicros;
}, 1);

/** How long the thread that answers was busy at a stretch, in its processor time (in ticks of the kernel): other programs do not change it. */
function takeLongestTurn(): number {
  const longest = longestTurnMs;
  longestTurnMs = 0;
  return longest;
}

function readThreadMicros(): number {
  const { user, system } = process.threadCpuUsage();
  return user + system;
}

function readCpuMicros(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** How long the thread that answers was ready to run and had no core; 0 where the kernel does not tell. */
function readWaitedMs(): number {
  if (!existsSync(SCHEDULE)) return 0;
  return Number(readFileSync(SCHEDULE, 'utf8').split(' ')[1]) / 1e6;
}
