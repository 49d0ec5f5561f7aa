import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Store } from '../../src/database/store.ts';
import type { Failure } from '../../src/errors.ts';
import { createStorePlace, engines, findReasonToSkip } from '../support/store/engines.ts';
import { insertNoteSql, insertPair } from '../support/store/note-store.ts';
import { createTestDatabase, startPostgresCluster } from '../support/store/postgres-cluster.ts';
import { checkStored, writeUntilKilled } from './crash.ts';
import { openNoteStore } from './open-note-store.ts';

/** Rounds of each test; `npm run crash:long` asks for more. */
const rounds = Number(process.env.TRIVET_CRASH_ROUNDS ?? 3);
/** A server takes seconds to come back. */
const restarts = Math.ceil(rounds / 2);
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
  for (let round = 0; round < restarts; round += 1) {
    const stop = new AbortController();
    const begun = [0, 1, 2, 3].map(() => Promise.withResolvers<void>());
    const writers = begun.map(({ resolve: onWritten }, writer) =>
      keepWriting(store, `${round}-${writer}`, { signal: stop.signal, refusals, onWritten }),
    );
    await Promise.all(begun.map(({ promise }) => promise));
    // All have connections. Now a moment by chance, and a while without the server.
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
  t.diagnostic(`${restarts} kills, ${acknowledged.length} acknowledged writes, 0 lost`);
});

interface Writing {
  readonly signal: AbortSignal;
  readonly refusals: Set<string>;
  /** Called with each acknowledged write. */
  readonly onWritten: () => void;
}

async function keepWriting(store: Store, prefix: string, { signal, refusals, onWritten }: Writing): Promise<string[]> {
  const acknowledged: string[] = [];
  for (let count = 0; !signal.aborted; count += 1) {
    const id = `${prefix}-${count}`;
    try {
      if (count % 2 === 0) await store.write(insertNoteSql, [id, 1]);
      else await store.call(insertPair, id);
      acknowledged.push(count % 2 === 0 ? `single ${id}` : `procedure ${id}`);
      onWritten();
    } catch (error) {
      refusals.add((error as Failure).code ?? String(error));
      await pause();
    }
  }
  return acknowledged;
}

async function waitForWrite(store: Store, prefix: string): Promise<void> {
  for (let count = 0; ; count += 1) {
    const rows = await store.write(insertNoteSql, [`${prefix}-${count}`, 1]).catch(() => []);
    if (rows.length > 0) return;
    await pause();
  }
}

/** Without it calls that are refused at once would never let the store look for its server. */
async function pause(): Promise<void> {
  await sleep(10);
}
