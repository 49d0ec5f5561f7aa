/**
 * Seals what is stored under a former key again under the current one, so that the former can be given up. Batches are
 * small and by key, so that nothing waits for them; each row is replaced only where it still is what was read, and what
 * is done is passed over by the next run. So it may run beside the service, be killed at any moment, and run again.
 */
import type { Vault } from '../vault/vault.ts';
import { type Row, type SqlValue, type Statement, type Store, statement } from './store.ts';

/** A column of sealed secrets, as its owner describes it. */
export interface SealedColumn {
  /** What people call it. */
  readonly name: string;
  readonly table: string;
  readonly column: string;
  /** The columns of the primary key, one or two. */
  readonly keys: readonly [string] | readonly [string, string];
  /** Keys before all others. */
  readonly start: readonly SqlValue[];
  /** What a box is bound to. */
  readonly bind: (row: SealedRow) => string;
}

export interface SealedPlace extends Pick<SealedColumn, 'name' | 'start' | 'bind'> {
  /** Rows that begin otherwise than $1, $2 at most, behind the keys $3 (and $4) and in their order. */
  readonly list: Statement<SealedRow>;
  /** Puts $1 in the place of $2 in the row with the keys $3 (and $4), and answers with a row when it did. */
  readonly replace: Statement<Row>;
}

export interface SealedRow {
  readonly box: Uint8Array;
  readonly key_1: SqlValue;
  /** Where the key has two columns. */
  readonly key_2?: SqlValue;
}

/** The statements differ by names alone, which are written in the program: nothing of them comes from outside. */
export function createSealedPlace({ name, table, column, keys, start, bind }: SealedColumn): SealedPlace {
  const [first, second] = keys;
  const selected = second === undefined ? `${first} AS key_1` : `${first} AS key_1, ${second} AS key_2`;
  const isBehind = second === undefined ? `${first} > $3` : `(${first}, ${second}) > ($3, $4)`;
  const isThis = second === undefined ? `${first} = $3` : `${first} = $3 AND ${second} = $4`;
  return {
    name,
    start,
    bind,
    // A row without a secret is passed over: no comparison with NULL is true.
    list: statement<SealedRow>(
      `list_sealed_${table}_${column}`,
      `SELECT ${selected}, ${column} AS box FROM ${table}
       WHERE ${isBehind} AND substr(${column}, 1, 5) <> $1 ORDER BY ${keys.join(', ')} LIMIT $2`,
    ),
    replace: statement(
      `reseal_${table}_${column}`,
      `UPDATE ${table} SET ${column} = $1 WHERE ${isThis} AND ${column} = $2 RETURNING ${first}`,
    ),
  };
}

const BATCH = 200;

/** How many were sealed again; called back with the number so far after each batch. */
export async function resealPlace(
  { store, vault }: { readonly store: Store; readonly vault: Vault },
  place: SealedPlace,
  onBatch: (done: number) => void = () => {},
): Promise<number> {
  let done = 0;
  let keys = place.start;
  for (;;) {
    const rows = await store.read(place.list, [vault.mark, BATCH, ...keys]);
    const results = await store.writeAll(rows.map((row) => createStep(vault, place, row)));
    done += results.filter((replaced) => replaced.length > 0).length;
    onBatch(done);
    const last = rows.at(-1);
    if (last === undefined) return done;
    keys = keysOf(last);
  }
}

function createStep(vault: Vault, { replace, bind }: SealedPlace, row: SealedRow) {
  const binding = bind(row);
  const box = vault.seal(vault.open(row.box, binding), binding);
  return { statement: replace, parameters: [box, row.box, ...keysOf(row)] };
}

function keysOf({ key_1, key_2 }: SealedRow): readonly SqlValue[] {
  return key_2 === undefined ? [key_1] : [key_1, key_2];
}
