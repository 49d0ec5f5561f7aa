import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Store } from '../../src/database/store.ts';
import type { StorePlace } from '../support/store/engines.ts';
import { listNotesSql } from '../support/store/note-store.ts';

const WRITER = fileURLToPath(new URL('./crash-writer.ts', import.meta.url));

/** Lets a writer write until it has recorded a random number of things, kills it, and returns what it recorded. */
export async function writeUntilKilled(
  place: StorePlace,
  prefix: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<string[]> {
  const notes = join(place.dataDir, 'acknowledged');
  rmSync(notes, { force: true });
  const child = spawn(process.execPath, [WRITER, place.dataDir, place.databaseUrl ?? '', prefix, notes], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, ...environment },
  });
  const enough = 2_000 + Math.random() * 20_000;
  const look = setInterval(() => {
    if ((statSync(notes, { throwIfNoEntry: false })?.size ?? 0) > enough) child.kill('SIGKILL');
  }, 5);
  const [, signal] = (await once(child, 'close')) as [number | null, string | null];
  clearInterval(look);
  assert.equal(signal, 'SIGKILL', 'the writer ended before it was killed');
  return readFileSync(notes, 'utf8').split('\n').slice(0, -1);
}

/** Throws unless everything acknowledged is there and every unit is there as a whole. */
export async function checkStored(store: Store, acknowledged: readonly string[]): Promise<void> {
  const stored = new Set((await store.read(listNotesSql)).map((row) => row.id));
  const lost = acknowledged.flatMap(expandAcknowledged).filter((id) => !stored.has(id));
  assert.deepEqual(lost, [], 'acknowledged, and not there after the crash');
  const half = [...stored].filter((id) => /-[ab]$/.test(id) && !stored.has(twinOf(id)));
  assert.deepEqual(half, [], 'units that are half there');
}

function expandAcknowledged(line: string): string[] {
  const [kind, id] = line.split(' ') as [string, string];
  return kind === 'single' ? [id] : [`${id}-a`, `${id}-b`];
}

function twinOf(id: string): string {
  return id.endsWith('-a') ? id.replace(/-a$/, '-b') : id.replace(/-b$/, '-a');
}
