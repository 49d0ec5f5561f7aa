import assert from 'node:assert/strict';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { listSamples } from '../observations/sample-store.ts';
import { readTrainingRows } from './read-rows.ts';
import { createTrainingIntake } from './training-intake.ts';

const NOW_MS = Date.parse('2026-08-22T08:00:01Z');

forEachEngine('rows of a batch that is dated ahead move back together, the latest to now', async (store) => {
  const entries = [300_000, 299_000, 240_000, -60_000, 100 * 86_400_000].map((aheadMs) => ({
    kv_cache_percentage: 0.1,
    input_token_length: 100,
    num_request_waiting: 0,
    num_request_running: 1,
    num_tokens_generated: 9,
    prefix_cache_score: 0,
    actual_ttft_ms: 120,
    actual_tpot_ms: 9,
    timestamp: new Date(NOW_MS + aheadMs).toISOString(),
  }));
  const take = createTrainingIntake({
    store,
    world: { nowMs: () => NOW_MS },
    sink: { learn: async () => {} },
    measuredTimes: { record() {} },
  });
  await take('m', await readTrainingRows(Buffer.from(JSON.stringify({ entries }))));
  const samples = await listSamples(store, 'm', { limit: 100 });
  const behindMs = samples.map(({ observation }) => NOW_MS - observation.atMs!);
  assert.deepEqual(
    behindMs.sort((a, b) => a - b),
    [0, 0, 1000, 60_000, 360_000],
  );
});
