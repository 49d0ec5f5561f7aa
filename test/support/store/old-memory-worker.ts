/** Calls the store or a group commit many times, and posts the bytes that one call leaves in old memory. */
import { rmSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { migrations } from '../../../src/database/migrations/list.ts';
import { createGroupCommit } from '../../../src/webhooks/intake/group-commit.ts';
import { measureOldBytes } from '../basics/old-memory.ts';
import { createStorePlace, openTestStore } from './engines.ts';
import { findNoteSql, insertNoteSql, noteMigration } from './note-store.ts';
import type { OldMemoryCase } from './old-memory-cases.ts';

const CALLS = 2000;
const CALLERS = 4;

type Call = (number: number) => Promise<unknown>;

async function measureCalls(call: Call): Promise<number> {
  let lastNumber = 0;
  const bytes = await measureOldBytes(async () => {
    const callers = Array.from({ length: CALLERS }, async () => {
      for (let count = 0; count < CALLS / CALLERS; count += 1) {
        lastNumber += 1;
        await call(lastNumber);
      }
    });
    await Promise.all(callers);
  });
  return bytes / CALLS;
}

async function measureStore(): Promise<number> {
  const place = await createStorePlace('sqlite');
  await using store = await openTestStore(place, { migrations: [...migrations, noteMigration] });
  const bytes = await measureCalls(async (number) => {
    await store.write(insertNoteSql, [`note ${number}`, number]);
    await store.readCached(findNoteSql, [`note ${number}`]);
  });
  rmSync(place.dataDir, { recursive: true });
  return bytes;
}

function measureGroupCommit(): Promise<number> {
  const group = createGroupCommit<{ readonly number: number }, number>({
    maxItems: 64,
    maxWaitingBytes: 1000,
    maxBytesOfAll: 1000,
    smallBytes: 64,
    bytesOf: () => 1,
    ownerOf: () => 'ada',
    commit: (items) => Promise.resolve(items.map(({ number }) => number)),
  });
  return measureCalls((number) => group.submit({ number }));
}

const measured = (workerData as OldMemoryCase) === 'store' ? measureStore() : measureGroupCommit();
parentPort?.postMessage(await measured);
