/**
 * Stores events that wait to be sent, one file each beside the repository, so that a crash loses none. A file is written under
 * another name, flushed and renamed, so there are whole ones only. A name begins with a number that follows the time and is
 * larger than those that wait, so order survives a crash and a clock that is set back. Then come something random, so that two
 * pushes at once never write one file, and a digest of the repository's name, so that the entries of a repository can be passed
 * over without being read.
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
  /** Durable when it resolves; in the order given. */
  append(entries: readonly SpoolEntry[]): Promise<void>;
  /** The names of the files, oldest first; none is read. */
  list(): string[];
  read(file: string): EntryReading;
  remove(file: string): void;
  /** Sets an event that can never be sent aside, for an operator to inspect. */
  setAside(file: string): void;
  /** `send`: sends now. `background`: goes on trying. Undefined while another process has the lock. */
  lock(name: 'send' | 'background'): Disposable | undefined;
}

/** A name without the digest, or without the random part too, is of an earlier version. */
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

/** Whether the name tells that it is of that repository. */
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

/** Without numbers that no time reaches: what follows them would have more digits. */
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
    // A full disk gets the room back.
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

/** A rename is durable once its folder is. */
async function flush(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
