/** Deleting rows past their time a batch at a time: a million old rows must not hold up the writes of others. */
import { type Statement, statement } from './store.ts';

/** Rows that one statement changes at most. */
export const SWEEP_BATCH = 500;

export interface DatedTable {
  readonly table: string;
  /** One column: `ctid` and `rowid` are no portable names. */
  readonly key: string;
  readonly time: string;
}

/** Deletes at most $2 rows, the oldest first, whose time is not after $1; returns a row for each. */
export function deleteOldSql({ table, key, time }: DatedTable): Statement {
  return statement(
    `sweep-${table}`,
    `DELETE FROM ${table} WHERE ${time} <= $1
       AND ${key} IN (SELECT ${key} FROM ${table} WHERE ${time} <= $1 ORDER BY ${time} LIMIT $2)
     RETURNING ${key}`,
  );
}

/** Repeats a batch, which returns how many rows it changed, until one is not full; returns how many in all. */
export async function repeatBatches(
  batch: () => Promise<number>,
  pause: () => Promise<void> = async () => {},
): Promise<number> {
  for (let count = 0; ; ) {
    const changed = await batch();
    count += changed;
    if (changed < SWEEP_BATCH) return count;
    await pause();
  }
}
