import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { createPromotedAtGauge } from './model-loader.ts';

test('of more than 256 served models, /metrics shows the latest promotions', async () => {
  const loaded = Array.from({ length: 260 }, (_, index) => ({
    name: `m${index}`,
    version: 1,
    promotedAtMs: 1000 + index,
  }));
  const metrics = new Registry();
  createPromotedAtGauge(metrics, () => loaded);
  const { values } = await metrics.getSingleMetric('trivet_prediction_version_promoted_seconds')!.get();
  assert.deepEqual(
    values.map(({ labels, value }) => [labels.model, value]),
    loaded
      .slice(4)
      .reverse()
      .map(({ name, promotedAtMs }) => [name, promotedAtMs / 1000]),
  );
});
