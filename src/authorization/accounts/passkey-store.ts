/** Stores passkeys, and refuses a passkey whose counter shows that it was copied. */
import { type BoundStatement, type Store, statement } from '../../database/store.ts';

export interface Passkey {
  /** The credential id, base64url. */
  readonly id: string;
  readonly userId: string;
  readonly name: string;
  readonly publicKey: Uint8Array;
  readonly counter: number;
  readonly transports: readonly string[];
  readonly createdAtMs: number;
  readonly lastUsedAtMs: number | null;
}

interface PasskeyRow {
  readonly id: string;
  readonly user_id: string;
  readonly name: string;
  readonly public_key: Uint8Array;
  readonly counter: number;
  readonly transports: string;
  readonly created_at_ms: number;
  readonly last_used_at_ms: number | null;
}

const PASSKEY_COLUMNS = 'id, user_id, name, public_key, counter, transports, created_at_ms, last_used_at_ms';

const passkeyByIdSql = statement<PasskeyRow>('passkey-by-id', `SELECT ${PASSKEY_COLUMNS} FROM passkeys WHERE id = $1`);
const passkeysOfUserSql = statement<PasskeyRow>(
  'passkeys-of-user',
  `SELECT ${PASSKEY_COLUMNS} FROM passkeys WHERE user_id = $1 ORDER BY created_at_ms, id`,
);
const insertPasskeySql = statement<{ id: string }>(
  'insert-passkey',
  `INSERT INTO passkeys (id, user_id, name, public_key, counter, transports, created_at_ms)
   VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING RETURNING id`,
);
// WebAuthn §6.1.1: a counter that does not rise reveals a copy; authenticators without a counter always send 0.
const usePasskeySql = statement<{ id: string }>(
  'use-passkey',
  `UPDATE passkeys SET counter = $2, last_used_at_ms = $3
   WHERE id = $1 AND (counter < $2 OR (counter = 0 AND $2 = 0)) RETURNING id`,
);
const deletePasskeySql = statement<{ id: string }>(
  'delete-passkey',
  'DELETE FROM passkeys WHERE id = $1 AND user_id = $2 RETURNING id',
);

function toPasskey(row: PasskeyRow): Passkey {
  return {
    id: row.id,
    userId: row.user_id,
    name: row.name,
    publicKey: row.public_key,
    counter: row.counter,
    transports: row.transports === '' ? [] : row.transports.split(' '),
    createdAtMs: row.created_at_ms,
    lastUsedAtMs: row.last_used_at_ms,
  };
}

export async function findPasskey(store: Store, id: string): Promise<Passkey | undefined> {
  const [row] = await store.read(passkeyByIdSql, [id]);
  return row && toPasskey(row);
}

export async function listPasskeys(store: Store, userId: string): Promise<Passkey[]> {
  return (await store.read(passkeysOfUserSql, [userId])).map(toPasskey);
}

export function insertPasskeyStatement(passkey: Omit<Passkey, 'lastUsedAtMs'>): BoundStatement {
  const { id, userId, name, publicKey, counter, transports, createdAtMs } = passkey;
  return {
    statement: insertPasskeySql,
    parameters: [id, userId, name, publicKey, counter, transports.join(' '), createdAtMs],
  };
}

/** Returns false if the counter did not rise: the authenticator may have been copied. */
export async function usePasskey(
  store: Store,
  use: { readonly id: string; readonly counter: number; readonly nowMs: number },
): Promise<boolean> {
  return (await store.write(usePasskeySql, [use.id, use.counter, use.nowMs])).length > 0;
}

export function deletePasskeyStatement(id: string, userId: string): BoundStatement {
  return { statement: deletePasskeySql, parameters: [id, userId] };
}
