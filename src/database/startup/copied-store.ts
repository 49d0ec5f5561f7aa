/**
 * Refuses to serve a SQLite store whose rows were copied to PostgreSQL. A service that is started without DATABASE_URL would
 * silently serve it, so a file beside it prevents that until a person decides.
 */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Failure } from '../../errors.ts';
import { removeDurably, replaceDurableFile } from '../durable-file.ts';
import { hasFile } from '../has-file.ts';

const MARKER_FILE = 'trivet.moved';

export interface MoveMark {
  /** Must be called when the copy is committed. */
  complete(nowMs: number): void;
  /** Must be called when the copy was not committed: removes the mark. */
  undo(): void;
}

/**
 * Durably marks the store before the commit of its copy: after a process has ended in the middle of the commit, the two stores
 * cannot both be served. `target` must not contain a password.
 */
export function beginMove(dataDir: string, target: string, nowMs: number): MoveMark {
  const file = markerOf(dataDir);
  const former = readMarker(dataDir);
  replaceDurableFile(
    file,
    `${UNFINISHED} to ${target} began at ${new Date(nowMs).toISOString()}, and its end is not known.\n`,
  );
  return {
    complete: (endMs) => replaceDurableFile(file, `Copied to ${target} at ${new Date(endMs).toISOString()}.\n`),
    undo: () => (former === undefined ? removeDurably(file) : replaceDurableFile(file, former)),
  };
}

const UNFINISHED = 'A move';

/** The message about a move whose outcome is unknown. */
export function findUnfinishedMove(dataDir: string): string | undefined {
  const marker = readMarker(dataDir)?.trim();
  return marker?.startsWith(UNFINISHED) ? marker : undefined;
}

/** Throws `conflict` when the store in the folder was copied to another database, or may have been. */
export function checkNotCopied(dataDir: string): void {
  const marker = readMarker(dataDir)?.trim();
  if (marker === undefined) return;
  const file = markerOf(dataDir);
  const explanation =
    findUnfinishedMove(dataDir) === undefined
      ? `it was moved. ${marker} Set DATABASE_URL to use the copy, or delete "${file}" to use this old database again`
      : `it may have been moved. ${marker} Set DATABASE_URL to use the copy if it is there, or delete "${file}" to use this database`;
  throw new Failure('conflict', `Cannot use the database in "${resolve(dataDir)}": ${explanation}`);
}

function readMarker(dataDir: string): string | undefined {
  const file = markerOf(dataDir);
  return hasFile(file) ? readFileSync(file, 'utf8') : undefined;
}

/** The file that marks the store as moved. */
export function markerOf(dataDir: string): string {
  return join(resolve(dataDir), MARKER_FILE);
}
