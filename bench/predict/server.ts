/** The server under load: the transport, the codec, the service and a predictor, in a process of its own. */
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { openGrpcServer } from '../../src/grpc/server.ts';
import type { Predictor } from '../../src/prediction/columns.ts';
import { createPredictionService } from '../../src/prediction/prediction-service.ts';
import { createPredictor } from '../../src/prediction/predictor.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { realWorld } from '../../src/world.ts';
import { createTrainedPredictor } from './trained-predictor.ts';

const { values: flags } = parseArgs({
  options: { model: { type: 'string', default: 'trained' }, 'while-refit': { type: 'boolean', default: false } },
});

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

const predictor = PREDICTORS[flags.model]?.();
if (predictor === undefined) throw new Error(`--model must be one of ${Object.keys(PREDICTORS).join(', ')}`);
const metrics = createMetrics();
const service = createPredictionService({ predictor, unknownModel: 'prior', metrics, world: realWorld });
const server = await openGrpcServer({
  services: [service.grpc],
  host: '127.0.0.1',
  port: 0,
  maxMessageBytes: 4_194_304,
  log: createLog('warn'),
  metrics,
  world: realWorld,
});
if (flags['while-refit']) new Worker(new URL('refit-thread.ts', import.meta.url));
process.send?.({ port: server.port });
process.on('message', () => process.send?.({ cpuMicros: readCpuMicros() }));
process.once('SIGTERM', () => void server.drain(1000).then(() => process.exit(0)));

function readCpuMicros(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}
