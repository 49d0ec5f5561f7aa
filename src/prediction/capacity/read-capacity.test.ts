import assert from 'node:assert/strict';
import { saveTestVersion } from '../../../test/support/prediction/model-versions.ts';
import { observePool } from '../../../test/support/prediction/observed-pool.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { withStoreClock } from '../../database/store-clock.ts';
import { realWorld } from '../../world.ts';
import { insertSampleStatements } from '../observations/sample-store.ts';
import { promoteModel } from '../registry/model-store.ts';
import { readCapacity } from './read-capacity.ts';

forEachEngine(
  'the capacity is that of the newest rows where the clock of the machine is behind that of the database',
  async (_, { place, t, openAnother }) => {
    const { now } = Date;
    t.mock.method(Date, 'now', () => now() - 600_000);
    const store = await openAnother();
    const nowMs = withStoreClock(realWorld, store).nowMs();
    const rows = observePool({ rows: 200 }).map((row, i) => ({ ...row, atMs: nowMs - 500 * (199 - i) }));
    await store.writeAll(insertSampleStatements(rows.map((observation, i) => ({ id: i + 1, observation }))));
    const version = await saveTestVersion(store, 'm');
    await promoteModel(store, { name: 'm', version, nowMs: 1, reason: 'trained' });
    const answer = await readCapacity({
      place,
      targetModel: 'm',
      limits: { ttftMs: undefined, tpotMs: 60, quantile: 0.9 },
      promptTokens: undefined,
      outputTokens: 100,
      servers: undefined,
      podType: '',
    });
    assert.ok('servers' in answer, JSON.stringify(answer));
    assert.equal(answer.servers[0]?.reported?.atMs, nowMs);
  },
);
