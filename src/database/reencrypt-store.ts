/**
 * Encrypts secrets that are stored under a former key with the current key, batch by batch (key rotation). Batches are small and
 * follow the primary key, so that other writes do not wait long. A row is replaced only if it is unchanged since it was read, and
 * the next run skips finished rows. So it may run beside the service, be killed at any moment, and run again. A secret that cannot
 * be read does not keep others from being encrypted.
 */
import type { SecretCipher } from '../encryption/secret-cipher.ts';
import { describeError } from '../errors.ts';
import {
  type BoundStatement,
  nameStatement,
  type Row,
  type SqlValue,
  type Statement,
  type Store,
  statement,
} from './store.ts';

/** A column of encrypted secrets, as its owner describes it. */
export interface ColumnDescription {
  /** The name that people see. */
  readonly name: string;
  readonly table: string;
  readonly column: string;
  /** The columns of the primary key, one or two. */
  readonly keys: readonly [string] | readonly [string, string];
  /** A primary key that is lower than any: the scan starts here. */
  readonly start: readonly SqlValue[];
  /** The associated data of a row's ciphertext. */
  readonly associatedData: (row: EncryptedRow) => string;
}

export interface EncryptedColumn extends Pick<ColumnDescription, 'name' | 'start' | 'associatedData'> {
  /** Up to $2 rows after key $3 (and $4), in key order, whose ciphertext lacks the prefix $1. */
  readonly list: Statement<EncryptedRow>;
  /** Replaces the ciphertext $2 with $1 in the row with key $3 (and $4). Returns a row when it did. */
  readonly replace: Statement<Row>;
}

export interface EncryptedRow {
  readonly ciphertext: Uint8Array;
  readonly key_1: SqlValue;
  /** The second part of a key with two columns. */
  readonly key_2?: SqlValue;
}

/** The statements differ only by names of tables and columns, which are constants of the program: no input is part of the SQL. */
export function createEncryptedColumn({
  name,
  table,
  column,
  keys,
  start,
  associatedData,
}: ColumnDescription): EncryptedColumn {
  const [first, second] = keys;
  const selected = second === undefined ? `${first} AS key_1` : `${first} AS key_1, ${second} AS key_2`;
  const isBehind = second === undefined ? `${first} > $3` : `(${first}, ${second}) > ($3, $4)`;
  const isThis = second === undefined ? `${first} = $3` : `${first} = $3 AND ${second} = $4`;
  return {
    name,
    start,
    associatedData,
    // A row without a secret is skipped: no comparison with NULL is true.
    list: statement<EncryptedRow>(
      nameStatement('list-encrypted', table, column),
      `SELECT ${selected}, ${column} AS ciphertext FROM ${table}
       WHERE ${isBehind} AND substr(${column}, 1, 5) <> $1 ORDER BY ${keys.join(', ')} LIMIT $2`,
    ),
    replace: statement(
      nameStatement('reencrypt', table, column),
      `UPDATE ${table} SET ${column} = $1 WHERE ${isThis} AND ${column} = $2 RETURNING ${first}`,
    ),
  };
}

const BATCH = 200;

export interface Reencrypted {
  readonly encrypted: number;
  /** For each secret that cannot be read: its row and the reason. These stay as they are. */
  readonly unreadable: readonly string[];
}

/** Calls `onBatch` with the number of secrets encrypted so far after each batch. */
export async function reencryptColumn(
  { store, cipher }: { readonly store: Store; readonly cipher: SecretCipher },
  column: EncryptedColumn,
  onBatch: (encrypted: number) => void = () => {},
): Promise<Reencrypted> {
  let encrypted = 0;
  const unreadable: string[] = [];
  for (let keys = column.start; ; ) {
    const rows = await store.read(column.list, [cipher.keyPrefix, BATCH, ...keys]);
    const read = rows.map((row) => createStatement(cipher, column, row));
    unreadable.push(...read.filter((each) => typeof each === 'string'));
    const results = await store.writeAll(read.filter((each) => typeof each !== 'string'));
    encrypted += results.filter((replaced) => replaced.length > 0).length;
    onBatch(encrypted);
    const last = rows.at(-1);
    if (last === undefined) return { encrypted, unreadable };
    keys = keysOf(last);
  }
}

/** Returns the statement that replaces the ciphertext, or why it cannot be read. */
function createStatement(
  cipher: SecretCipher,
  { replace, associatedData }: EncryptedColumn,
  row: EncryptedRow,
): BoundStatement | string {
  const data = associatedData(row);
  try {
    const ciphertext = cipher.encrypt(cipher.decrypt(row.ciphertext, data), data);
    return { statement: replace, parameters: [ciphertext, row.ciphertext, ...keysOf(row)] };
  } catch (error) {
    return describeError(error);
  }
}

function keysOf({ key_1, key_2 }: EncryptedRow): readonly SqlValue[] {
  return key_2 === undefined ? [key_1] : [key_1, key_2];
}
