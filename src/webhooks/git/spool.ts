/**
 * Stores events that wait to be sent, one file each in the bare repository, so that a crash loses none. A file is written under another
 * name, flushed and renamed, so that no incomplete file has an entry's name. A name begins with a number made from the time, which is
 * larger than the numbers of all waiting files, so that the order survives a crash and a clock that is set back. A random part follows,
 * so that two concurrent pushes never write the same file, and a digest of the repository's name, so that the entries of a repository
 * can be skipped without reading them.
 */
import { hash } from 'node:crypto';
import { mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { ID_END_MS, idAtMs } from '../../database/ids.ts';
import type { World } from '../../world.ts';
import { type EntryReading, readEntry, type SpoolEntry } from './read-entry.ts';
import { lockFile } from './spool-lock.ts';

export interface Spool {
  readonly folder: string;
  /** Stores the entries in this order; they are durable when it resolves. */
  append(entries: readonly SpoolEntry[]): Promise<void>;
  /** The names of the files, oldest first; reads no file. */
  list(): string[];
  read(file: string): EntryReading;
  remove(file: string): void;
  /** Moves an event that can never be sent to `refused`, for an operator to inspect. */
  setAside(file: string): void;
  /** `send`: to send now. `background`: to go on trying. Undefined while another process has the lock. */
  lock(name: 'send' | 'background'): Disposable | undefined;
}

/** Earlier versions wrote names without the digest, or without digest and random part. */
const ENTRY = /^\d{16}(-[\da-f]{12}(-[\da-f]{8})?)?\.json$/;
const NUMBER_DIGITS = 16;
const REFUSED = 'refused';

export function openSpool(gitDir: string, world: Pick<World, 'nowMs' | 'uuid'>): Spool {
  const folder = join(gitDir, 'trivet-spool');
  const createName = createRisingNames(world, folder);
  return {
    folder,
    append: async (entries) => {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      for (const entry of entries) await writeEntry(folder, `${createName()}-${digestOf(entry.repository)}`, entry);
      await flush(folder);
    },
    list: () => listFiles(folder),
    read: (file) => readEntry(join(folder, file)),
    remove: (file) => rmSync(join(folder, file), { force: true }),
    setAside: (file) => {
      mkdirSync(join(folder, REFUSED), { recursive: true, mode: 0o700 });
      renameSync(join(folder, file), join(folder, REFUSED, file));
    },
    lock: (name) => lockFile(folder, `${name}.lock`),
  };
}

function digestOf(repository: string): string {
  return hash('sha256', repository).slice(0, 8);
}

/** Whether the name shows that the file is of that repository. */
export function isFileOf(repository: string, file: string): boolean {
  return file.endsWith(`-${digestOf(repository)}.json`);
}

function createRisingNames(world: Pick<World, 'nowMs' | 'uuid'>, folder: string): () => string {
  let last: number | undefined;
  return () => {
    last = Math.max(idAtMs(world.nowMs()), (last ?? findLargestNumber(folder)) + 1);
    return `${String(last).padStart(NUMBER_DIGITS, '0')}-${world.uuid().slice(-12)}`;
  };
}

/** The largest number of a file, except numbers beyond any time, whose successors would have more digits. */
function findLargestNumber(folder: string): number {
  const numbers = listFiles(folder).map((file) => Number(file.slice(0, NUMBER_DIGITS)));
  return numbers.findLast((number) => number < idAtMs(ID_END_MS)) ?? 0;
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

async function writeEntry(folder: string, name: string, entry: SpoolEntry): Promise<void> {
  const draft = join(folder, `.${name}.draft`);
  try {
    await writeDraft(draft, entry);
    renameSync(draft, join(folder, `${name}.json`));
  } catch (error) {
    // On a full disk this frees the space again.
    rmSync(draft, { force: true });
    throw error;
  }
}

async function writeDraft(draft: string, entry: SpoolEntry): Promise<void> {
  const handle = await open(draft, 'w', 0o600);
  try {
    await handle.writeFile(JSON.stringify(entry));
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Flushes a folder: a rename is durable only then. */
async function flush(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
