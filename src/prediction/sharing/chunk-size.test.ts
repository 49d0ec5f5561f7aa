import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPriorModel } from '../model/model.ts';
import { createLiveModel } from '../online/live-model.ts';
import { certaintyOf } from '../schema/answer-certainty.ts';
import { createPredictColumns } from '../schema/columns.ts';
import { PREDICTION_TARGETS } from '../schema/observation-table.ts';
import { decodeChunk, encodeChunk } from './entries-codec.ts';
import { MAX_ENTRIES } from './shared-learning.ts';
import { createSharedModel } from './shared-model.ts';

test('of 10,000 servers a process writes a thousand in a row, in turn, and less than a megabyte', (t) => {
  const live = createLiveModel(createPriorModel());
  const shared = createSharedModel(live, { monotonicMs: () => 0 });
  const columns = createPredictColumns(1);
  columns.count = 1;
  for (let server = 0; server < 10_000; server++) {
    const forecast = live.forecast(columns, '', Buffer.from(`10.0.${server >> 8}.${server & 255}`));
    for (const target of PREDICTION_TARGETS) {
      // A certainty of a third has the most digits.
      shared.beforeObserve({ key: forecast.key, podType: '', target }, certaintyOf(target, 2));
      live.observe(forecast, target, { observedMs: 50 + server, outputTokens: 2 });
    }
  }
  const seen = new Set<string>();
  let rows = 0;
  let longest = 0;
  for (let taken = shared.take(MAX_ENTRIES); taken.length > 0; taken = shared.take(MAX_ENTRIES)) {
    const bytes = encodeChunk({ sinceMs: 0, models: taken.map((each) => ({ targetModel: 'm', ...each })) });
    const entries = taken.flatMap((each) => each.entries);
    assert.ok(entries.length <= MAX_ENTRIES);
    assert.ok(bytes.length < 1e6, `${bytes.length} bytes`);
    longest = Math.max(longest, bytes.length);
    for (const { name } of entries) seen.add(name.server);
    for (const decoded of decodeChunk(bytes).models) for (const _ of shared.apply(decoded, true));
    rows++;
  }
  // No model keeps more servers than the index has numbers; each is in four groups.
  assert.equal(seen.size - 1, live.servers.count);
  assert.ok(rows <= Math.ceil((4 * live.servers.capacity + 6) / MAX_ENTRIES), `${rows} rows`);
  assert.equal(shared.countPending(), 0);
  t.diagnostic(`${rows} rows, the longest of ${longest} bytes`);
});
