import assert from 'node:assert/strict';
import { saveTestVersion } from '../../../test/support/prediction/model-versions.ts';
import { observePool } from '../../../test/support/prediction/observed-pool.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import { withStoreClock } from '../../database/store-clock.ts';
import { realWorld } from '../../world.ts';
import { insertSampleStatement, insertSampleStatements } from '../observations/sample-store.ts';
import { promoteModel, readModelFile, saveModelVersion, takeVersionNumber } from '../registry/model-store.ts';
import { learnFromSamples } from './learn-from-samples.ts';

forEachEngine(
  'a served version that this program cannot read is retrained from all samples',
  async (store, { place }) => {
    const samples = observePool({ rows: 200 }).map((observation, id) =>
      insertSampleStatement({ id: id + 1, observation: { ...observation, atMs: id } }),
    );
    await store.writeAll(samples);
    const readable = await readModelFile(store, 'm', await saveTestVersion(store, 'm'));
    const version = await takeVersionNumber(store, 'm');
    const file = Uint8Array.from(readable);
    // A later format, as a newer program writes it.
    file[8]! += 1;
    const lineage = JSON.stringify({ source: { lastSampleId: 200 }, learned: [] });
    await saveModelVersion(store, {
      name: 'm',
      version,
      parentVersion: 1,
      createdAtMs: 1,
      checksum: 'c',
      lineage,
      file,
    });
    await promoteModel(store, { name: 'm', version, nowMs: 1, reason: 'an upgrade' });

    const { winner, rows, judgedRows } = await learnFromSamples({ place, targetModel: 'm' });
    assert.deepEqual([rows, judgedRows], [200, 40]);
    assert.notEqual(winner, undefined);
  },
);

/** Dates the rows of a pool, a second apart, and serves a version that has learned from them. */
async function serveLearned(store: Store, count: number, lastMs: number): Promise<void> {
  await addDated(store, { count, lastMs, firstId: 1 });
  const version = await saveTestVersion(store, 'm', { lastSampleId: count });
  await promoteModel(store, { name: 'm', version, nowMs: 1, reason: 'trained' });
}

interface DatedRows {
  readonly count: number;
  readonly lastMs: number;
  readonly firstId: number;
}

async function addDated(store: Store, { count, lastMs, firstId }: DatedRows): Promise<void> {
  const rows = observePool({ rows: count, seed: firstId });
  const dated = rows.map((row, i) => ({ ...row, atMs: lastMs - 1000 * (count - 1 - i) }));
  await store.writeAll(insertSampleStatements(dated.map((observation, i) => ({ id: firstId + i, observation }))));
}

forEachEngine(
  'new rows are the newest where the clock of the machine is behind that of the database',
  async (_, { place, t, openAnother }) => {
    const { now } = Date;
    t.mock.method(Date, 'now', () => now() - 600_000);
    const store = await openAnother();
    const nowMs = withStoreClock(realWorld, store).nowMs();
    await serveLearned(store, 200, nowMs - 3_600_000);
    await addDated(store, { count: 60, lastMs: nowMs, firstId: 201 });
    const { judgedRows } = await learnFromSamples({ place, targetModel: 'm' });
    assert.equal(judgedRows, 30);
  },
);

forEachEngine('rows that are older than all that a training reads are not fresh after it', async (store, { place }) => {
  const nowMs = Date.now();
  await serveLearned(store, 200, nowMs);
  await addDated(store, { count: 100, lastMs: nowMs - 3_600_000, firstId: 201 });
  const { rows, lastSampleId } = await learnFromSamples({ place, targetModel: 'm' }, 200);
  assert.deepEqual([rows, lastSampleId], [200, 300]);
});

forEachEngine('rows that are dated before 1970 are learned from too', async (store, { place }) => {
  await addDated(store, { count: 100, lastMs: 50_000, firstId: 1 });
  const { rows } = await learnFromSamples({ place, targetModel: 'm' });
  assert.equal(rows, 100);
});
