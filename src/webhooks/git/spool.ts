/**
 * Events that wait to be sent, one file each in a folder beside the repository's objects. A file is written under another
 * name, flushed and renamed, so there are whole ones only. Names rise with time, so order survives a crash, and end in
 * something random, so that two pushes at once never write one file. Who sends holds a lock of the system's that ends
 * with its process.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { idAtMs } from '../../database/ids.ts';
import type { World } from '../../world.ts';
import type { EventInput } from '../events/event.ts';

export interface SpoolEntry {
  /** `owner/name` */
  readonly repository: string;
  /** Makes a second sending harmless. */
  readonly key: string;
  readonly event: EventInput;
}

export interface SpooledEntry {
  readonly file: string;
  readonly entry: SpoolEntry;
}

export interface Spool {
  readonly folder: string;
  /** Durable when it resolves; in the order given. */
  append(entries: readonly SpoolEntry[]): Promise<void>;
  list(): SpooledEntry[];
  remove(file: string): void;
  /** Sets an event that can never be sent aside, for an operator to inspect. */
  setAside(file: string): void;
  /** Undefined while another process sends. */
  lock(): { [Symbol.dispose](): void } | undefined;
}

/** A name without the random end is of an earlier version. */
const ENTRY = /^\d{16}(-[\da-f]{12})?\.json$/;
const REFUSED = 'refused';

export function openSpool(gitDir: string, world: Pick<World, 'nowMs' | 'uuid'>): Spool {
  const folder = join(gitDir, 'trivet-spool');
  const createName = createRisingNames(world);
  return {
    folder,
    append: async (entries) => {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      for (const entry of entries) await writeEntry(folder, createName(), entry);
      await flush(folder);
    },
    list: () =>
      listFiles(folder).flatMap((file) => {
        const entry = readEntry(join(folder, file));
        return entry === undefined ? [] : [{ file, entry }];
      }),
    remove: (file) => rmSync(join(folder, file), { force: true }),
    setAside: (file) => {
      mkdirSync(join(folder, REFUSED), { recursive: true, mode: 0o700 });
      renameSync(join(folder, file), join(folder, REFUSED, file));
    },
    lock: () => lockFolder(folder),
  };
}

function createRisingNames(world: Pick<World, 'nowMs' | 'uuid'>): () => string {
  let last = 0;
  return () => {
    last = Math.max(idAtMs(world.nowMs()), last + 1);
    return `${String(last).padStart(16, '0')}-${world.uuid().slice(-12)}`;
  };
}

function listFiles(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((file) => ENTRY.test(file))
      .sort();
  } catch {
    return [];
  }
}

/** Gone when another process has sent it meanwhile. */
function readEntry(path: string): SpoolEntry | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as SpoolEntry;
  } catch {
    return undefined;
  }
}

async function writeEntry(folder: string, name: string, entry: SpoolEntry): Promise<void> {
  const draft = join(folder, `.${name}.draft`);
  const handle = await open(draft, 'w', 0o600);
  try {
    await handle.writeFile(JSON.stringify(entry));
    await handle.sync();
  } finally {
    await handle.close();
  }
  renameSync(draft, join(folder, `${name}.json`));
}

/** A rename is durable once its folder is. */
async function flush(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function lockFolder(folder: string): { [Symbol.dispose](): void } | undefined {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const database = new DatabaseSync(join(folder, 'send.lock'), { timeout: 0 });
  try {
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    return { [Symbol.dispose]: () => database.close() };
  } catch {
    database.close();
    return undefined;
  }
}
