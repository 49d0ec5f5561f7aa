import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Histogram, Registry } from 'prom-client';
import { CallHistogram } from './call-histogram.ts';

const description = { name: 'duration_seconds', help: 'A duration', buckets: [0.00005, 0.001, 0.1] };

test('a CallHistogram is scraped as a histogram of prom-client with the same values, as text and as JSON', async () => {
  const [registry, expected] = [new Registry(), new Registry()];
  const histogram = new CallHistogram({ ...description, registers: [registry] });
  const reference = new Histogram({ ...description, registers: [expected] });
  assert.equal(await registry.metrics(), await expected.metrics());
  for (const value of [0, 0.00005, 0.00006, 0.001, 0.05, 0.1, 0.2, 3]) {
    histogram.count(value);
    reference.observe(value);
  }
  const text = await registry.metrics();
  assert.equal(text, await expected.metrics());
  assert.match(text, /duration_seconds_bucket\{le="0.00005"\} 2\n/);
  assert.deepEqual(toValues(await registry.getMetricsAsJSON()), toValues(await expected.getMetricsAsJSON()));
});

function toValues(metrics: unknown): unknown {
  return (metrics as { readonly values: readonly { labels: object; value: number; metricName?: string }[] }[]).map(
    ({ values }) => values.map(({ labels, value, metricName }) => ({ labels: { ...labels }, value, metricName })),
  );
}
