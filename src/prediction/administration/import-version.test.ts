import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { auditChange } from '../../../test/support/basics/audited-changes.ts';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import { callOnStore } from '../../operations/call-on-store.ts';
import { COMMAND_LINE } from '../../operations/operation.ts';
import { listModelVersions, listPromotedModels } from '../registry/model-store.ts';
import { type FileReader, HERE } from './file-reader.ts';
import { implementModels } from './implement-models.ts';
import { importVersion } from './model-operations.ts';

const file = readFileSync(new URL('../formats/fixtures/xgboost-gamma.json', import.meta.url));

interface ImportOptions {
  readonly reader?: FileReader;
  readonly file?: Uint8Array;
  readonly podType?: string;
}

function importTarget(store: Store, target: 'ttft' | 'tpot', options: ImportOptions = {}) {
  const { reader = HERE, podType } = options;
  const implementations = implementModels({ store, world: createStillWorld(), auditChange, reader });
  const input = { model: 'm', target, podType, promote: 'true', source: 'model.json' } as const;
  return callOnStore(implementations, importVersion, { input, file, actor: COMMAND_LINE, ...options });
}

/** Another import comes and ends while this one reads its file. */
const createReaderBeside = (importOther: () => Promise<unknown>): FileReader => ({
  ...HERE,
  readImport: async (order) => {
    await importOther();
    return await HERE.readImport(order);
  },
});

forEachEngine('of two imports at once, one is refused, so that no target of the other is lost', async (store) => {
  const reader = createReaderBeside(() => importTarget(store, 'tpot'));
  await assert.rejects(importTarget(store, 'ttft', { reader }), {
    code: 'conflict',
    message: 'Cannot promote the new version of "m": another one was promoted meanwhile',
  });
  const versions = await listModelVersions(store, 'm');
  assert.deepEqual(
    versions.map(({ version, isPromoted }) => [version, isPromoted]),
    [[1, true]],
  );
  await importTarget(store, 'ttft');
  const [served] = await listPromotedModels(store);
  const [newest] = await listModelVersions(store, 'm');
  const { learned } = JSON.parse(newest!.lineage) as { learned: { target: string }[] };
  assert.equal(newest?.version, served?.version);
  assert.deepEqual(learned.map(({ target }) => target).sort(), ['tpot', 'ttft']);
});

const broken: [title: string, replaced: [from: string, to: string], message: RegExp][] = [
  ['with fewer names than features', ['"num_feature":"3"', '"num_feature":"4"'], /has 3 names for 4 features/],
  ['with a base score of 0', ['"base_score":"3E0"', '"base_score":"0E0"'], /base_score must be more than 0 .*"0E0"/],
  ['with a base score below 0', ['"base_score":"3E0"', '"base_score":"-3E0"'], /base_score must be more than 0/],
];
for (const [title, [from, to], message] of broken)
  forEachEngine(`a model ${title} is refused, and nothing is stored`, async (store) => {
    const text = file.toString('utf8').replaceAll(from, to);
    await assert.rejects(importTarget(store, 'ttft', { file: Buffer.from(text) }), { code: 'invalid', message });
    assert.deepEqual(await listModelVersions(store), []);
  });
