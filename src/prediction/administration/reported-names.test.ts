/** Reports may name a model with an `@`, up to 256 bytes: every operation reaches its versions. */
import assert from 'node:assert/strict';
import { auditChange } from '../../../test/support/basics/audited-changes.ts';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { saveTestVersion } from '../../../test/support/prediction/model-versions.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import { callOnStore } from '../../operations/call-on-store.ts';
import { COMMAND_LINE } from '../../operations/operation.ts';
import { compareTwoVersions } from './accuracy-operations.ts';
import { HERE } from './file-reader.ts';
import { implementModels } from './implement-models.ts';
import { exportVersion, importVersion, listVersions, promote, rollBack, showVersion } from './model-operations.ts';

/** The second ends as an id does. */
const NAMES = ['text-bison@001', 'claude@20240620', 'é'.repeat(128)];

function openOperations(store: Store) {
  const implementations = implementModels({ store, world: createStillWorld(), auditChange, reader: HERE });
  const given = { actor: COMMAND_LINE, file: new Uint8Array() };
  return {
    list: (after?: string) => callOnStore(implementations, listVersions, { input: { limit: '1', after }, ...given }),
    show: (id: string) => callOnStore(implementations, showVersion, { input: { id }, ...given }),
    export: (id: string) => callOnStore(implementations, exportVersion, { input: { id }, ...given }),
    import: (file: Uint8Array) => callOnStore(implementations, importVersion, { input: {}, ...given, file }),
    promote: (id: string) => callOnStore(implementations, promote, { input: { id }, ...given }),
    rollBack: (model: string) => callOnStore(implementations, rollBack, { input: { model }, ...given }),
    compare: (id: string, other: string) =>
      callOnStore(implementations, compareTwoVersions, { input: { id, with: other }, ...given }),
  };
}

for (const name of NAMES)
  forEachEngine(`versions of "${name}" are promoted, shown, compared, moved and rolled back`, async (store) => {
    const models = openOperations(store);
    for (const version of [1, 2]) {
      assert.equal(await saveTestVersion(store, name), version);
      assert.deepEqual(await models.promote(`${name}@${version}`), { id: `${name}@${version}`, changed: true });
    }
    assert.equal((await models.show(name)).id, `${name}@2`);
    assert.equal((await models.show(`${name}@1`)).version, 1);
    assert.equal((await models.compare(`${name}@1`, '2')).id, `${name}@1`);
    assert.deepEqual(await models.rollBack(name), { id: `${name}@1`, from: `${name}@2` });
    const file = await models.export(`${name}@1`);
    assert.deepEqual(await models.import(file), { id: `${name}@3`, promoted: true });
  });

forEachEngine('a name alone that ends as an id does gives way to the version that it is the id of', async (store) => {
  const models = openOperations(store);
  await saveTestVersion(store, 'm@1');
  assert.equal((await models.show('m@1')).name, 'm@1');
  await saveTestVersion(store, 'm');
  assert.equal((await models.show('m@1')).name, 'm');
  assert.equal((await models.show('m@1@1')).name, 'm@1');
  await assert.rejects(models.show('m@2'), { code: 'not_found', message: 'Cannot find the model "m@2"' });
});

forEachEngine('the pages of the list go on after any name', async (store) => {
  const models = openOperations(store);
  for (const name of ['a', ...NAMES]) await saveTestVersion(store, name);
  const ids: string[] = [];
  let next: string | undefined;
  do {
    const page = await models.list(next);
    ids.push(...page.versions.map(({ id }) => id));
    next = page.next ?? undefined;
  } while (next !== undefined);
  assert.deepEqual(ids, ['a@1', 'claude@20240620@1', 'text-bison@001@1', `${NAMES[2]}@1`]);
});
