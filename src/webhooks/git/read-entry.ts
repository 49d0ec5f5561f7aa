/**
 * Reads one file of the spool, and refuses links, pipes and files that are too large. Other programs and other users of the machine may
 * have put files there, so it follows no link, waits for no pipe, reads no more than the size of an entry, and checks the content.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { isSystemError } from '../../errors.ts';
import type { EventInput } from '../events/event.ts';

export interface SpoolEntry {
  /** `owner/name` */
  readonly repository: string;
  /** The idempotency key, so that the entry may be sent twice. */
  readonly key: string;
  readonly event: EventInput;
}

export type EntryReading =
  | { readonly kind: 'entry'; readonly entry: SpoolEntry }
  /** Another process has sent the entry meanwhile. */
  | { readonly kind: 'gone' }
  /** The file may become readable later, since permissions can change. */
  | { readonly kind: 'unreadable'; readonly reason: string }
  /** The file is no entry. */
  | { readonly kind: 'malformed'; readonly reason: string };

/** Far above the largest event that the hook writes. */
const MAX_ENTRY_BYTES = 16 * 1024 * 1024;
/** Some platforms lack the last two flags; there, the type of the file shows a link or a pipe. */
const FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

export function readEntry(path: string): EntryReading {
  try {
    return parseEntry(readFile(path));
  } catch (error) {
    if (error instanceof MalformedEntry) return { kind: 'malformed', reason: error.message };
    if (!isSystemError(error)) throw error;
    if (error.code === 'ENOENT') return { kind: 'gone' };
    if (error.code === 'ELOOP') return { kind: 'malformed', reason: 'it is a symbolic link' };
    return { kind: 'unreadable', reason: error.message };
  }
}

class MalformedEntry extends Error {}

function readFile(path: string): string {
  const file = openSync(path, FLAGS);
  try {
    const status = fstatSync(file);
    if (!status.isFile()) throw new MalformedEntry('it is not a file');
    if (status.size > MAX_ENTRY_BYTES) throw new MalformedEntry(`it has more than ${MAX_ENTRY_BYTES} bytes`);
    return readBytes(file, status.size).toString('utf8');
  } finally {
    closeSync(file);
  }
}

function readBytes(file: number, size: number): Buffer {
  const bytes = Buffer.alloc(size);
  let length = 0;
  for (let read = -1; read !== 0 && length < size; length += read)
    read = readSync(file, bytes, length, size - length, null);
  return bytes.subarray(0, length);
}

function parseEntry(text: string): EntryReading {
  const entry = parseJson(text);
  if (!isObject(entry)) throw new MalformedEntry('it must be a JSON object');
  const { repository, key, event } = entry;
  if (typeof repository !== 'string' || !isRepositoryName(repository))
    throw new MalformedEntry('"repository" must be owner/name');
  if (typeof key !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(key))
    throw new MalformedEntry('"key" must be 1 to 255 printable ASCII characters');
  if (!isObject(event) || typeof event.kind !== 'string') throw new MalformedEntry('"event" must have a "kind"');
  return { kind: 'entry', entry: entry as unknown as SpoolEntry };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new MalformedEntry('it must be JSON');
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether the text is `owner/name`, and neither part is `.` or `..`, which a URL would resolve as a path. */
export function isRepositoryName(text: string): boolean {
  return /^[^/\s]+\/[^/\s]+$/.test(text) && !text.split('/').some((part) => part === '.' || part === '..');
}
