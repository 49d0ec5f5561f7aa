/** A disk that is full under the embedded database: what must be written is refused, and nothing is lost or wrong later. */
import assert from 'node:assert/strict';
import { closeSync, existsSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
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
  // The database's log may have had room for some more.
  for (; answer.status === 200; answer = await refresh(at, newest)) newest = String(answer.json.refresh_token);
  assert.deepEqual([answer.status, answer.json.error], [503, 'temporarily_unavailable'], answer.text);
  // The log goes its own way, and may come after the answer.
  await waitUntil(() => /database or disk is full/.test(program.log()));
  assert.equal(await callApi(at, tokens.access_token), 200, 'reads go on');

  const copy = join(dataDir, 'copy.db');
  const backup = await runTrivet(['backup', copy], { env: { TRIVET_DATA_DIR: dataDir } });
  assert.equal(backup.code, 1);
  assert.match(backup.stderr, /^Cannot back up ".+\/trivet\.db": .*disk is full\n$/);
  assert.ok(!existsSync(copy));

  rmSync(ballast);
  const renewed = await refresh(at, newest);
  assert.equal(renewed.status, 200, 'the refused refresh left the token as it was');
  assert.equal(await callApi(at, String(renewed.json.access_token)), 200);
  assert.equal(await program.stop(), 0);
});
