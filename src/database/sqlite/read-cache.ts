/**
 * Caches answers of statements until the next commit of any process (SQLite's data version). Reading the data version takes
 * less time than most statements, and it reports commits of this process's writer and of other processes: so a cached answer is
 * as current as a fresh one, and no change needs a notification.
 */

import type { Row, SqlValue, Statement } from '../store.ts';
import type { SqliteConnection } from './sqlite-connection.ts';

export interface ReadCache {
  /** The rows are shared: callers must not change them. */
  readCached(statement: Statement<object>, parameters: readonly SqlValue[]): Row[];
}

/** The most entries, which take some megabytes; beyond it the cache is cleared. */
const MAX_ANSWERS = 10_000;
/** The longest cached key: digests and ids are far shorter, but strangers choose client ids, and could fill the cache with long ones. */
const MAX_KEY_LENGTH = 300;

export function createReadCache(connection: SqliteConnection, maxAnswers = MAX_ANSWERS): ReadCache {
  let answers = new Map<string, Row[]>();
  let version = -1;
  let isChecked = false;
  const forget = () => {
    isChecked = false;
  };

  // Read before the rows: a commit in between makes the next call read again, and never keeps a stale answer.
  const check = (): void => {
    const current = connection.dataVersion();
    // A new map: clearing one with each commit leaves its rows in old memory (`memory/id-table.ts`).
    if (current !== version) answers = new Map();
    version = current;
    isChecked = true;
    // The version is valid until the current microtasks end. Nothing is received before that, so no caller who learned of a later
    // commit can have called yet: all look-ups of one request share one read of the version. Node runs ticks before promises: the
    // first tick may run before the promises that continue after this look-up.
    process.nextTick(afterPromises, forget);
  };

  return {
    readCached: (statement, parameters) => {
      if (!isChecked) check();
      const key = formatKey(statement, parameters);
      if (key.length > MAX_KEY_LENGTH) return connection.run(statement, parameters);
      if (answers.size >= maxAnswers) answers = new Map();
      const known = answers.get(key);
      if (known !== undefined) return known;
      const rows = connection.run(statement, parameters);
      answers.set(key, rows);
      return rows;
    },
  };
}

function afterPromises(run: () => void): void {
  void Promise.resolve().then(() => process.nextTick(run));
}

/** A key that differs for different parameters: each has its type, and bytes, which may have any content, have their length. */
function formatKey({ name }: Statement<object>, parameters: readonly SqlValue[]): string {
  let key = name;
  for (const value of parameters) {
    if (value instanceof Uint8Array) key += `\0b${value.length}:${toLatin1(value)}`;
    else key += typeof value === 'string' ? `\0s${value}` : `\0n${value}`;
  }
  return key;
}

function toLatin1({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('latin1');
}
