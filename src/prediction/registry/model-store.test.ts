import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createStorePlace,
  findReasonToSkip,
  forEachEngine,
  openTestStore,
} from '../../../test/support/store/engines.ts';
import { procedure, type Store } from '../../database/store.ts';
import type { Failure } from '../../errors.ts';
import {
  listModelVersions,
  listPromotedModels,
  MODELS_TOPIC,
  promoteModel,
  promoteProcedure,
  pruneModelVersions,
  readModelFile,
  rollBackModel,
  saveModelVersion,
  takeVersionNumber,
} from './model-store.ts';

let beforeCommit = async (): Promise<void> => {};
const slowPromotion = procedure(
  import.meta.url,
  'slowPromotion',
  async (tx, promotion: Parameters<typeof promoteProcedure.run>[1]) => {
    const isChanged = await promoteProcedure.run(tx, promotion);
    await beforeCommit();
    return isChanged;
  },
);

async function saveVersion(store: Store, name: string): Promise<number> {
  const version = await takeVersionNumber(store, name);
  await saveModelVersion(store, {
    name,
    version,
    parentVersion: version > 1 ? version - 1 : undefined,
    createdAtMs: 1000 + version,
    checksum: `sum-${version}`,
    lineage: '{}',
    file: Uint8Array.of(version, 255, 0),
  });
  return version;
}

async function saveAndPromote(store: Store, name: string, count: number): Promise<void> {
  for (let i = 0; i < count; i++)
    await promoteModel(store, { name, version: await saveVersion(store, name), nowMs: 5000 + i, reason: 'trained' });
}

async function promotedVersion(store: Store, name: string): Promise<number | undefined> {
  return (await listPromotedModels(store)).find((model) => model.name === name)?.version;
}

forEachEngine('a version is read back as it was saved, under rising numbers of its name', async (store) => {
  assert.equal(await saveVersion(store, 'a'), 1);
  assert.equal(await saveVersion(store, 'a'), 2);
  assert.equal(await saveVersion(store, 'b'), 1);
  assert.deepEqual(
    (await listModelVersions(store, 'a')).map(({ version, parentVersion, sizeBytes, isPromoted }) => ({
      version,
      parentVersion,
      sizeBytes,
      isPromoted,
    })),
    [
      { version: 2, parentVersion: 1, sizeBytes: 3, isPromoted: false },
      { version: 1, parentVersion: undefined, sizeBytes: 3, isPromoted: false },
    ],
  );
  assert.deepEqual([...(await readModelFile(store, 'a', 2))], [2, 255, 0]);
  assert.equal((await listModelVersions(store)).length, 3);
});

forEachEngine('a version cannot be saved twice', async (store) => {
  await saveVersion(store, 'a');
  const again = saveModelVersion(store, {
    name: 'a',
    version: 1,
    parentVersion: undefined,
    createdAtMs: 1,
    checksum: 'other',
    lineage: '{}',
    file: Uint8Array.of(9),
  });
  await assert.rejects(again);
  assert.deepEqual([...(await readModelFile(store, 'a', 1))], [1, 255, 0]);
});

forEachEngine('rollback goes back one promotion at a time, and not beyond the first', async (store) => {
  await saveAndPromote(store, 'a', 3);
  assert.equal(await promotedVersion(store, 'a'), 3);
  assert.equal((await rollBackModel(store, { name: 'a', nowMs: 6000 })).version, 2);
  assert.equal((await rollBackModel(store, { name: 'a', nowMs: 6001 })).version, 1);
  assert.equal(await promotedVersion(store, 'a'), 1);
  await assert.rejects(rollBackModel(store, { name: 'a', nowMs: 6002 }), (error: Failure) => error.code === 'conflict');
  await promoteModel(store, { name: 'a', version: 3, nowMs: 6003, reason: 'again' });
  assert.deepEqual(await rollBackModel(store, { name: 'a', nowMs: 6004 }), { version: 1, from: 3 });
});

forEachEngine(
  'what is served already is not promoted again, and a rollback leads to another version',
  async (store) => {
    await saveAndPromote(store, 'a', 2);
    assert.equal(await promoteModel(store, { name: 'a', version: 2, nowMs: 6000, reason: 'twice' }), false);
    assert.equal((await rollBackModel(store, { name: 'a', nowMs: 6001 })).version, 1);
    assert.equal(await promoteModel(store, { name: 'a', version: 2, nowMs: 6002, reason: 'again' }), true);
    assert.equal(await promotedVersion(store, 'a'), 2);
  },
);

forEachEngine('a rollback leads to another version, also when the one between was pruned', async (store) => {
  await saveAndPromote(store, 'a', 3);
  const promote = (version: number) => promoteModel(store, { name: 'a', version, nowMs: 6000, reason: 'again' });
  const rollBack = async () => await rollBackModel(store, { name: 'a', nowMs: 7000 });
  await promote(2);
  await saveAndPromote(store, 'a', 3);
  assert.deepEqual(await pruneModelVersions(store, 'a', 4), [1]);
  await promote(2);
  await saveAndPromote(store, 'a', 1);
  assert.deepEqual(await pruneModelVersions(store, 'a', 4), [3]);
  const steps = [await rollBack(), await rollBack(), await rollBack(), await rollBack(), await rollBack()];
  assert.deepEqual(
    steps.map(({ from, version }) => [from, version]),
    [
      [7, 2],
      [2, 6],
      [6, 5],
      [5, 4],
      [4, 2],
    ],
  );
  await assert.rejects(rollBack(), { code: 'conflict' });
  assert.equal(await promotedVersion(store, 'a'), 2);
});

test('a promotion of a version that is pruned meanwhile is refused', {
  skip: findReasonToSkip('postgres'),
}, async () => {
  const place = await createStorePlace('postgres');
  await using store = await openTestStore(place);
  await using another = await openTestStore(place);
  await saveAndPromote(store, 'a', 7);
  beforeCommit = async () => {
    beforeCommit = async () => {};
    assert.deepEqual(await pruneModelVersions(another, 'a', 2), [1, 2]);
  };
  const markChanged = store.markChanged(MODELS_TOPIC, 6000);
  const promotion = { name: 'a', version: 1, nowMs: 6000, reason: 'again', markChanged };
  await assert.rejects(store.call(slowPromotion, promotion), { code: 'not_found' });
  assert.equal(await promotedVersion(store, 'a'), 7);
});

forEachEngine('an unknown model cannot be rolled back', async (store) => {
  await assert.rejects(rollBackModel(store, { name: 'missing', nowMs: 1 }), { code: 'not_found' });
});

forEachEngine('an unknown version is not promoted, and nothing changes', async (store) => {
  await saveAndPromote(store, 'a', 1);
  const promotion = promoteModel(store, { name: 'a', version: 7, nowMs: 1, reason: 'typo' });
  await assert.rejects(promotion, (error: Failure) => error.code === 'not_found');
  assert.equal(await promotedVersion(store, 'a'), 1);
});

forEachEngine('pruning keeps the newest versions and those a rollback needs', async (store) => {
  await saveAndPromote(store, 'a', 2);
  for (let i = 0; i < 6; i++) await saveVersion(store, 'a');
  assert.deepEqual(
    (await pruneModelVersions(store, 'a', 3)).sort((a, b) => a - b),
    [3, 4, 5],
  );
  assert.deepEqual(
    (await listModelVersions(store, 'a')).map((version) => version.version),
    [8, 7, 6, 2, 1],
  );
  assert.equal((await rollBackModel(store, { name: 'a', nowMs: 9000 })).version, 1);
});

forEachEngine('another process is notified of a promotion', async (store, { openAnother }) => {
  const other = await openAnother();
  await saveVersion(store, 'a');
  let check: (() => void) | undefined;
  other.watch(MODELS_TOPIC, () => check?.());
  const notified = new Promise<void>((resolve) => {
    check = () => void promotedVersion(other, 'a').then((version) => version === 1 && resolve());
  });
  await promoteModel(store, { name: 'a', version: 1, nowMs: 2000, reason: 'trained' });
  await notified;
});
