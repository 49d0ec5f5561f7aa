import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs, {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { waitUntil } from '../../../test/support/basics/wait-until.ts';
import { createStorePlace, openTestStore } from '../../../test/support/store/engines.ts';
import { insertPair, listNotesSql, noteMigration } from '../../../test/support/store/note-store.ts';
import { createDurableFile } from '../durable-file.ts';
import { migrations } from '../migrations/list.ts';
import { databaseFileOf } from '../startup/open-store.ts';
import type { Store } from '../store.ts';
import { backupSqlite } from './backup.ts';

const options = { migrations: [...migrations, noteMigration] };

async function listIds(store: Store): Promise<string[]> {
  return (await store.read(listNotesSql)).map((row) => row.id);
}

test('a backup made while others write opens as a database, with what was stored before and no half transaction', async () => {
  const place = await createStorePlace('sqlite');
  await using store = await openTestStore(place, options);
  const before = Array.from({ length: 50 }, (_, index) => store.call(insertPair, `before-${index}`));
  await Promise.all(before);
  const during = Array.from({ length: 500 }, (_, index) => store.call(insertPair, `during-${index}`));
  await during[0];
  const file = join(place.dataDir, 'copy');
  backupSqlite(databaseFileOf(place.dataDir), file);
  await Promise.all(during);

  assert.equal(statSync(file).mode & 0o777, 0o600);
  const dataDir = mkdtempSync(join(tmpdir(), 'trivet-test-'));
  copyFileSync(file, databaseFileOf(dataDir));
  await using restored = await openTestStore({ dataDir, databaseUrl: undefined }, options);
  const ids = await listIds(restored);
  assert.equal(ids.filter((id) => id.startsWith('before')).length, 100);
  assert.ok(ids.includes('during-0-a'));
  assert.equal(ids.filter((id) => id.endsWith('-a')).length, ids.filter((id) => id.endsWith('-b')).length);
  for (const folder of [dataDir, place.dataDir]) rmSync(folder, { recursive: true });
});

test('backupSqlite() never takes the place of a file, and leaves nothing behind when it fails', async () => {
  const place = await createStorePlace('sqlite');
  await using _store = await openTestStore(place, options);
  const folder = mkdtempSync(join(tmpdir(), 'trivet-test-'));
  writeFileSync(join(folder, 'old'), 'precious');
  assert.throws(() => backupSqlite(databaseFileOf(place.dataDir), join(folder, 'old')), { code: 'conflict' });
  assert.throws(() => backupSqlite(join(folder, 'none'), join(folder, 'new')), { code: 'not_found' });
  writeFileSync(join(folder, 'damaged'), 'not a database');
  assert.throws(() => backupSqlite(join(folder, 'damaged'), join(folder, 'new')), {
    code: 'unavailable',
    message: `Cannot back up "${join(folder, 'damaged')}": file is not a database; it is damaged, or a file of another program; restore a backup (made by "trivet backup")`,
  });
  assert.deepEqual(readdirSync(folder).sort(), ['damaged', 'old']);
  for (const each of [folder, place.dataDir]) rmSync(each, { recursive: true });
});

test('backupSqlite() is not stopped by what a backup that was killed has left', async () => {
  const place = await createStorePlace('sqlite');
  await using _store = await openTestStore(place, options);
  const file = join(place.dataDir, 'backup.db');
  // In a container every process may have the same process id as the previous one.
  writeFileSync(`${file}.${process.pid}.tmp`, 'half');
  backupSqlite(databaseFileOf(place.dataDir), file);
  assert.ok(statSync(file).size > 0);
  rmSync(place.dataDir, { recursive: true });
});

const BACKUP = new URL('./backup.ts', import.meta.url).href;

test('backupSqlite() removes the drafts of backups that were killed a day ago', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-test-'));
  const database = join(folder, 'database');
  using locked = new DatabaseSync(database);
  locked.exec('CREATE TABLE one (id); BEGIN EXCLUSIVE');
  const code = `import { backupSqlite } from '${BACKUP}'; backupSqlite(process.argv[1], process.argv[2]);`;
  const killed = spawn(process.execPath, ['--input-type=module', '-e', code, database, join(folder, 'yesterday')]);
  const draft = await waitUntil(() => readdirSync(folder).find((name) => name.startsWith('yesterday')));
  killed.kill('SIGKILL');
  await once(killed, 'exit');
  locked.exec('COMMIT');

  backupSqlite(database, join(folder, 'today'));
  assert.deepEqual(readdirSync(folder).sort(), ['database', 'today', draft], 'it could be under way');
  const yesterday = Date.now() / 1000 - 25 * 3600;
  utimesSync(join(folder, draft), yesterday, yesterday);
  backupSqlite(database, join(folder, 'tomorrow'));
  assert.deepEqual(readdirSync(folder).sort(), ['database', 'today', 'tomorrow']);
  rmSync(folder, { recursive: true });
});

test('backupSqlite() keeps what only ends like a draft', () => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-test-'));
  const database = join(folder, 'database');
  new DatabaseSync(database).close();
  const draft = `today.${crypto.randomUUID()}.trivet-backup`;
  backupSqlite(database, join(folder, 'nightly.trivet-backup'));
  mkdirSync(join(folder, draft));
  const yesterday = Date.now() / 1000 - 25 * 3600;
  for (const name of [draft, 'nightly.trivet-backup']) utimesSync(join(folder, name), yesterday, yesterday);
  backupSqlite(database, join(folder, 'today'));
  assert.deepEqual(readdirSync(folder).sort(), ['database', 'nightly.trivet-backup', 'today', draft]);
  rmSync(folder, { recursive: true });
});

/** The error of FAT and exFAT, which only root could mount. */
function refuseLinks(t: TestContext, code: string): void {
  t.mock.method(fs, 'linkSync', () => {
    throw Object.assign(new Error(`${code}: operation not permitted, link`), { code, syscall: 'link' });
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
}

for (const code of ['EPERM', 'ENOTSUP', 'ENOSYS'])
  test(`backupSqlite() makes a whole file where the file system answers hard links with ${code}`, async (t) => {
    const place = await createStorePlace('sqlite');
    await using _store = await openTestStore(place, options);
    const folder = mkdtempSync(join(tmpdir(), 'trivet-test-'));
    refuseLinks(t, code);
    const { bytes } = backupSqlite(databaseFileOf(place.dataDir), join(folder, 'copy'));
    assert.ok(bytes > 0);
    assert.deepEqual(readdirSync(folder), ['copy']);
    assert.equal(statSync(join(folder, 'copy')).size, bytes);
    assert.equal(statSync(join(folder, 'copy')).mode & 0o777, 0o600);
    for (const each of [folder, place.dataDir]) rmSync(each, { recursive: true });
  });

test('createDurableFile() keeps the first file where the file system has no hard links', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-test-'));
  refuseLinks(t, 'EPERM');
  assert.equal(createDurableFile(join(folder, 'keys'), 'first'), true);
  assert.equal(createDurableFile(join(folder, 'keys'), 'second'), false);
  assert.equal(readFileSync(join(folder, 'keys'), 'utf8'), 'first');
  assert.deepEqual(readdirSync(folder), ['keys']);
  rmSync(folder, { recursive: true });
});
