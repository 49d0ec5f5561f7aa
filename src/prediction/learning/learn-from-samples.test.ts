import assert from 'node:assert/strict';
import { saveTestVersion } from '../../../test/support/prediction/model-versions.ts';
import { observePool } from '../../../test/support/prediction/observed-pool.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { insertSampleStatement } from '../observations/sample-store.ts';
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
    // A later format, as a program leaves it that was newer than this one.
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
