import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { runTrivet } from '../../../test/support/programs/run-trivet.ts';
import { openTestStore } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import { createPriorModel, type LatencyModel } from '../model/model.ts';
import { insertSampleStatements } from '../observations/sample-store.ts';
import { packModel, publishModel } from '../registry/publish-model.ts';
import { trainModel } from '../training/train-model.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-rollback-'));
after(() => rmSync(folder, { recursive: true }));

const rows = observePool({ rows: 400, servers: [1, 2] });
const models = [trainModel('m@1', tabulate(rows.slice(0, 200))), createPriorModel(), createPriorModel()];

async function publish(store: Store, model: LatencyModel): Promise<void> {
  const order = { name: 'm', packed: packModel(model), source: {}, reason: 'a test', nowMs: 7 };
  await publishModel(store, { ...order, promotion: 'promote' });
}

async function report(store: Store): Promise<void> {
  const newest = rows.slice(200);
  const ids = await store.makeIds(newest.length);
  const samples = newest.map((row, index) => ({
    id: ids[index]!,
    observation: { ...row, targetModel: 'm', atMs: 1000 + index },
  }));
  await store.writeAll(insertSampleStatements(samples));
}

test('trivet model rollback shows how both versions predict the same samples, as trivet model compare does', async () => {
  const dataDir = join(folder, 'data');
  const run = (line: string) => runTrivet(line.split(' '), { env: { TRIVET_DATA_DIR: dataDir } });
  const withStore = async (work: (store: Store) => Promise<void>) => {
    await using store = await openTestStore({ dataDir, databaseUrl: undefined });
    await work(store);
  };
  await withStore(async (store) => {
    for (const model of models) await publish(store, model);
  });
  const early = await run('model rollback m');
  assert.equal(early.stdout, 'm@2 is served again, in place of m@3\n', 'there are no samples yet');
  await withStore(report);
  const { code, stdout, stderr } = await run('model rollback m');
  assert.equal(code, 0, stderr);
  const [first, ...table] = stdout.split('\n');
  assert.equal(first, 'm@1 is served again, in place of m@2');
  assert.match(stdout, /^m@1 compared with m@2 on the same 200 newest samples/m);
  for (const target of ['TTFT', 'TPOT']) assert.match(stdout, new RegExp(`^${target} +200 .* better `, 'm'));
  assert.equal(table.join('\n'), (await run('model compare m@1 --with 2')).stdout);
});
