import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { skipWithout } from '../support/basics/client-tools.ts';
import { createStorePlace } from '../support/store/engines.ts';
import { compileShim } from './compile-shim.ts';
import { checkStored, writeUntilKilled } from './crash.ts';
import { openNoteStore } from './open-note-store.ts';

/** Rounds; `npm run crash:long` asks for more. */
const rounds = Number(process.env.TRIVET_CRASH_ROUNDS ?? 2);

const skip =
  (process.platform !== 'linux' && 'the shim that keeps only what was flushed is for Linux') ||
  skipWithout('gcc libc6-dev', ['cc', '--version']);

const folder = mkdtempSync(join(tmpdir(), 'trivet-power-'));
after(() => rmSync(folder, { recursive: true }));

test('after a power cut everything acknowledged is on the disk, and no unit is half there (sqlite)', {
  skip,
}, async (t) => {
  const shim = compileShim('power-cut', folder);
  let count = 0;
  for (let round = 0; round < rounds; round += 1) {
    const place = await createStorePlace('sqlite');
    const flushed = join(folder, `round-${round}`);
    mkdirSync(flushed);
    // The schema is made before, without the shim, and flushed by being closed.
    await (await openNoteStore(place))[Symbol.asyncDispose]();
    cpSync(place.dataDir, flushed, { recursive: true });
    const acknowledged = await writeUntilKilled(place, '', { LD_PRELOAD: shim, POWER_CUT_DIR: flushed });
    assert.ok(existsSync(join(flushed, 'trivet.db-wal')), 'nothing was flushed');
    await using store = await openNoteStore({ dataDir: flushed, databaseUrl: undefined });
    await checkStored(store, acknowledged);
    count += acknowledged.length;
    rmSync(place.dataDir, { recursive: true });
  }
  t.diagnostic(`${rounds} power cuts, ${count} acknowledged writes, 0 lost`);
});
