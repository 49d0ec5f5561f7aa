/** The disk of the embedded database is full: writes are refused, and nothing is lost or wrong later. */
import assert from 'node:assert/strict';
import { closeSync, existsSync, openSync, readdirSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { migrations } from '../../src/database/migrations/list.ts';
import { realWorld } from '../../src/world.ts';
import {
  type AuthorizationEndpoint,
  callApi,
  createPerson,
  obtainTokens,
  refresh,
  registerApplication,
} from '../support/authorization/authorization-server.ts';
import { mountSmallDisk } from '../support/basics/small-disk.ts';
import { waitUntil } from '../support/basics/wait-until.ts';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { createDataDir, startProgram } from '../support/programs/start-program.ts';
import { openTestStore } from '../support/store/engines.ts';
import { insertFullNoteSql, insertNoteSql, noteMigration } from '../support/store/note-store.ts';

const MIB = 1_048_576;
const withNotes = [...migrations, noteMigration];

function fillDisk(file: string): void {
  const handle = openSync(file, 'w');
  const block = Buffer.alloc(4096);
  try {
    for (;;) writeSync(handle, block);
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC');
  } finally {
    closeSync(handle);
  }
}

test('a full disk refuses writes, leaves reads alone and is named in the log; with room again all goes on', async (t) => {
  const dataDir = createDataDir();
  await using undo = new AsyncDisposableStack();
  undo.defer(() => rmSync(dataDir, { recursive: true, force: true }));
  const disk = mountSmallDisk(t, dataDir, 24);
  if (disk === undefined) return;
  undo.use(disk);
  const program = await startProgram({ LOG_LEVEL: 'warn' }, dataDir);
  undo.defer(() => program.kill());
  const store = undo.use(await openTestStore({ dataDir, databaseUrl: undefined }));
  const at: AuthorizationEndpoint = { url: program.httpUrl, store, world: realWorld };
  const tokens = await obtainTokens(at, await createPerson(at), await registerApplication(at));

  const ballast = join(dataDir, 'ballast');
  fillDisk(ballast);
  let { refresh_token: newest } = tokens;
  let answer = await refresh(at, newest);
  // The write-ahead log may have had room for some more.
  for (; answer.status === 200; answer = await refresh(at, newest)) newest = String(answer.json.refresh_token);
  assert.deepEqual([answer.status, answer.json.error], [503, 'temporarily_unavailable'], answer.text);
  // The log is written independently, and may arrive after the answer.
  await waitUntil(() => /database or disk is full/.test(program.log()));
  assert.equal(await callApi(at, tokens.access_token), 200, 'reads go on');

  const copy = join(dataDir, 'copy.db');
  const backup = await runTrivet(['backup', copy], { env: { TRIVET_DATA_DIR: dataDir } });
  assert.equal(backup.code, 1);
  assert.match(
    backup.stderr,
    /^Cannot back up: the copy needs \d+ MiB .* and 0 MiB are free in ".+"; name a file on another/,
  );
  assert.ok(!existsSync(copy));

  rmSync(ballast);
  const renewed = await refresh(at, newest);
  assert.equal(renewed.status, 200, 'the refused refresh left the token as it was');
  assert.equal(await callApi(at, String(renewed.json.access_token)), 200);
  assert.equal(await program.stop(), 0);
});

const NOTE = Buffer.alloc(MIB, 1);

test('a backup that would fill the disk of a service that writes is refused before it takes any room', async (t) => {
  const dataDir = createDataDir();
  await using undo = new AsyncDisposableStack();
  undo.defer(() => rmSync(dataDir, { recursive: true, force: true }));
  const disk = mountSmallDisk(t, dataDir, 150);
  if (disk === undefined) return;
  undo.use(disk);
  const store = undo.use(await openTestStore({ dataDir, databaseUrl: undefined }, { migrations: withNotes }));
  const insert = (id: number) => store.write(insertFullNoteSql, [`n${id}`, id, null, NOTE, null]);
  for (let id = 0; id < 40; id++) await insert(id);
  const backUp = (file: string) => runTrivet(['backup', file], { env: { TRIVET_DATA_DIR: dataDir } });
  let isWriting = true;
  const written = writeWhile(
    () => isWriting,
    (id) => store.write(insertNoteSql, [`w${id}`, id]),
  );
  const refused = await backUp(join(dataDir, 'copy.db'));
  isWriting = false;
  assert.ok((await written) > 0, 'the writer goes on');
  assert.equal(refused.code, 1, refused.stdout);
  assert.match(
    refused.stderr,
    /^Cannot back up: the copy needs 1\d\d MiB beside a service that writes, and \d+ MiB are free in /,
  );
  assert.deepEqual(
    readdirSync(dataDir).filter((name) => name.includes('copy')),
    [],
  );

  const elsewhere = createDataDir();
  undo.defer(() => rmSync(elsewhere, { recursive: true, force: true }));
  assert.equal((await backUp(join(elsewhere, 'copy.db'))).code, 0);
});

async function writeWhile(goesOn: () => boolean, write: (id: number) => Promise<unknown>): Promise<number> {
  let count = 0;
  for (; goesOn(); count++) await write(count);
  return count;
}
