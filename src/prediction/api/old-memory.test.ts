/** `Predict` leaves nothing in old memory, or the whole heap would be collected several times a second under load. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { measureOldBytes } from '../../../test/support/basics/old-memory.ts';
import { encodeMessage, PredictRequest } from '../../../test/support/grpc/proto-messages.ts';
import { createMetrics } from '../../telemetry/metrics.ts';
import { realWorld } from '../../world.ts';
import { createPredictor } from '../online/predictor.ts';
import { createPredictionService } from './prediction-service.ts';

const CALLS = 50_000;
const MAX_BYTES_PER_CALL = 20;

test('calls of Predict leave nothing in old memory', async () => {
  const service = createPredictionService({
    predictor: createPredictor(),
    unknownModel: 'prior',
    metrics: createMetrics(),
    world: realWorld,
  });
  const inputs = Array.from({ length: 4 }, (_, index) => ({
    inputId: index + 1,
    podType: index % 2 === 0 ? 'decode' : 'prefill',
    inputTokenLength: 1000,
    serverIp: `10.0.0.${index}`,
  }));
  const request = encodeMessage(PredictRequest, { targetModel: 'qwen3-32b', inputs });
  const bytes = await measureOldBytes(() => {
    for (let call = 0; call < CALLS; call++) service.answerBytes(request);
  });
  assert.ok(bytes < MAX_BYTES_PER_CALL * CALLS, `${bytes / CALLS} bytes a call`);
});
