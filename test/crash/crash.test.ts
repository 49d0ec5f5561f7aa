import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Store } from '../../src/database/store.ts';
import type { Failure } from '../../src/errors.ts';
import { createStorePlace, engines, findReasonToSkip, type StorePlace } from '../support/engines.ts';
import { insertNote, insertPair, listNotes } from '../support/note-store.ts';
import { createTestDatabase, startPostgresCluster } from '../support/postgres-cluster.ts';
import { openNoteStore } from './open-note-store.ts';

/** Rounds of each test; `npm run crash:long` asks for more. */
const rounds = Number(process.env.TRIVET_CRASH_ROUNDS ?? 3);
const WRITER = fileURLToPath(new URL('./crash-writer.ts', import.meta.url));

/** Lets a writer write until it has said a random number of things, kills it, and returns what it said. */
async function writeUntilKilled(place: StorePlace, prefix: string): Promise<string[]> {
  const child = spawn(process.execPath, [WRITER, place.dataDir, place.databaseUrl ?? '', prefix], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const enough = 2_000 + Math.random() * 20_000;
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text;
    if (said.length > enough) child.kill('SIGKILL');
  });
  const [, signal] = (await once(child, 'close')) as [number | null, string | null];
  assert.equal(signal, 'SIGKILL', 'the writer ended before it was killed');
  return said.split('\n').slice(0, -1);
}

function expandAcknowledged(line: string): string[] {
  const [kind, id] = line.split(' ') as [string, string];
  return kind === 'single' ? [id] : [`${id}-a`, `${id}-b`];
}

async function checkStored(store: Store, acknowledged: readonly string[]): Promise<void> {
  const stored = new Set((await store.read(listNotes)).map((row) => row.id));
  const lost = acknowledged.flatMap(expandAcknowledged).filter((id) => !stored.has(id));
  assert.deepEqual(lost, [], 'acknowledged, and not there after the crash');
  const half = [...stored]
    .filter((id) => id.endsWith('-a') !== id.endsWith('-b'))
    .filter((id) => !stored.has(twinOf(id)));
  assert.deepEqual(half, [], 'units that are half there');
}

function twinOf(id: string): string {
  return id.endsWith('-a') ? id.replace(/-a$/, '-b') : id.replace(/-b$/, '-a');
}

for (const engine of engines)
  test(`a killed process loses nothing it acknowledged and leaves no unit half done (${engine})`, {
    skip: findReasonToSkip(engine),
  }, async (t) => {
    const place = await createStorePlace(engine);
    const acknowledged: string[] = [];
    for (let round = 0; round < rounds; round += 1) {
      acknowledged.push(...(await writeUntilKilled(place, `${round}-`)));
      await using store = await openNoteStore(place);
      await checkStored(store, acknowledged);
    }
    t.diagnostic(`${rounds} kills, ${acknowledged.length} acknowledged writes, 0 lost`);
    rmSync(place.dataDir, { recursive: true });
  });

test('a killed and restarted PostgreSQL loses nothing acknowledged, and the store goes on by itself', {
  skip: findReasonToSkip('postgres'),
}, async (t) => {
  const cluster = await startPostgresCluster({ isDurable: true });
  t.after(() => cluster.stop());
  const databaseUrl = await createTestDatabase(cluster.socketDir, 'crash');
  await using store = await openNoteStore({ dataDir: '', databaseUrl });
  const acknowledged: string[] = [];
  const refusals = new Set<string>();
  for (let round = 0; round < rounds; round += 1) {
    const stop = new AbortController();
    const writers = [0, 1, 2, 3].map((writer) => keepWriting(store, `${round}-${writer}`, stop.signal, refusals));
    await sleep(200 + Math.random() * 300);
    await cluster.kill();
    await sleep(300);
    await cluster.start();
    await waitForWrite(store, `${round}-after`);
    stop.abort();
    acknowledged.push(...(await Promise.all(writers)).flat());
    await checkStored(store, acknowledged);
  }
  assert.deepEqual([...refusals], ['unavailable']);
  t.diagnostic(`${rounds} kills, ${acknowledged.length} acknowledged writes, 0 lost`);
});

async function keepWriting(
  store: Store,
  prefix: string,
  signal: AbortSignal,
  refusals: Set<string>,
): Promise<string[]> {
  const acknowledged: string[] = [];
  for (let count = 0; !signal.aborted; count += 1) {
    const id = `${prefix}-${count}`;
    try {
      if (count % 2 === 0) await store.write(insertNote, [id, 1]);
      else await store.call(insertPair, id);
      acknowledged.push(count % 2 === 0 ? `single ${id}` : `procedure ${id}`);
    } catch (error) {
      refusals.add((error as Failure).code ?? String(error));
    }
  }
  return acknowledged;
}

async function waitForWrite(store: Store, prefix: string): Promise<void> {
  for (let count = 0; ; count += 1) {
    const rows = await store.write(insertNote, [`${prefix}-${count}`, 1]).catch(() => []);
    if (rows.length > 0) return;
  }
}
