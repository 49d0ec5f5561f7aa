/** The server under load, in a separate process: the transport, the codec, the services and a predictor that learns from reports. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { migrations } from '../../src/database/migrations/list.ts';
import { openStore } from '../../src/database/startup/open-store.ts';
import { openGrpcServer } from '../../src/grpc/listener/server.ts';
import { createGarbageCounter, openCollector } from '../../src/memory/garbage.ts';
import { createPredictionService } from '../../src/prediction/api/prediction-service.ts';
import { createPredictor, type SwappablePredictor } from '../../src/prediction/online/predictor.ts';
import type { Predictor } from '../../src/prediction/schema/columns.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { realWorld } from '../../src/world.ts';
import { openLearning } from './learning.ts';
import { serveReadings } from './readings.ts';
import { openReports } from './reports.ts';
import { createTrainedPredictor } from './trained-predictor.ts';

const { values: flags } = parseArgs({
  options: {
    model: { type: 'string', default: 'trained' },
    'while-refit': { type: 'boolean', default: false },
    samples: { type: 'string', default: '20000' },
  },
});

/** A predictor without cost, so that only transport, codec and service are measured. */
const nothing: Predictor = {
  hasModel: () => true,
  predict: (_targetModel, columns, predicted) => {
    predicted.ttftMs.fill(123.456, 0, columns.count);
    predicted.tpotMs.fill(12.3456, 0, columns.count);
    return 'none@1';
  },
};

const PREDICTORS: Record<string, () => SwappablePredictor> = {
  prior: createPredictor,
  trained: createTrainedPredictor,
};

const metrics = createMetrics();
const log = createLog('warn');
const dataDir = mkdtempSync(join(tmpdir(), 'trivet-bench-'));
const store = await openStore({ dataDir, migrations, log, world: realWorld });
const learning = flags['while-refit']
  ? await openLearning({ store, dataDir, log, metrics, samples: Number(flags.samples) })
  : undefined;
const live = learning?.predictor ?? PREDICTORS[flags.model]?.();
if (live === undefined && flags.model !== 'none')
  throw new Error(`--model must be one of none, ${Object.keys(PREDICTORS).join(', ')}`);
const predictor = live ?? nothing;
const service = createPredictionService({ predictor, unknownModel: 'prior', metrics, world: realWorld });
const reports = live === undefined ? [] : [openReports({ store, predictor: live, log, metrics })];
const server = await openGrpcServer({
  services: [...service.grpc, ...reports],
  host: '127.0.0.1',
  port: 0,
  maxMessageBytes: 4_194_304,
  log,
  metrics,
  world: realWorld,
  countGarbage: createGarbageCounter(openCollector().collectYoung),
});
serveReadings(server.port, (message) => {
  if (message === 'refit') learning?.start();
  return { refits: learning?.refits() ?? 0 };
});
process.once('SIGTERM', () => void stop().then(() => process.exit(0)));

async function stop(): Promise<void> {
  await server.drain(1000);
  rmSync(dataDir, { recursive: true, force: true });
}
