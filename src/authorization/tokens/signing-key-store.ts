/** Stores the keys that sign identity tokens, the private half encrypted. */
import { type BoundStatement, type Store, statement } from '../../database/store.ts';

export interface StoredKey {
  readonly kid: string;
  readonly publicJwk: string;
  readonly encryptedPrivateKey: Uint8Array;
  readonly createdAtMs: number;
  /** The JWKS publishes it until this time. */
  readonly expiresAtMs: number;
}

interface KeyRow {
  readonly kid: string;
  readonly public_jwk: string;
  readonly private_key: Uint8Array;
  readonly created_at_ms: number;
  readonly expires_at_ms: number;
}

const liveKeysSql = statement<KeyRow>(
  'live-signing-keys',
  `SELECT kid, public_jwk, private_key, created_at_ms, expires_at_ms FROM signing_keys
   WHERE expires_at_ms > $1 ORDER BY created_at_ms, kid`,
);
const insertKeySql = statement(
  'insert-signing-key',
  'INSERT INTO signing_keys (kid, public_jwk, private_key, created_at_ms, expires_at_ms) VALUES ($1, $2, $3, $4, $5)',
);
const deleteOtherKeysSql = statement<Pick<KeyRow, 'kid'>>(
  'delete-other-signing-keys',
  'DELETE FROM signing_keys WHERE kid <> $1 RETURNING kid',
);

/** Oldest first. */
export async function listSigningKeys(store: Store, nowMs: number): Promise<StoredKey[]> {
  const rows = await store.read(liveKeysSql, [nowMs]);
  return rows.map((row) => ({
    kid: row.kid,
    publicJwk: row.public_jwk,
    encryptedPrivateKey: row.private_key,
    createdAtMs: row.created_at_ms,
    expiresAtMs: row.expires_at_ms,
  }));
}

/** The sweeper removes those that are no longer published. */
export function insertKeyStatement(key: StoredKey): BoundStatement {
  const { kid, publicJwk, encryptedPrivateKey, createdAtMs, expiresAtMs } = key;
  return { statement: insertKeySql, parameters: [kid, publicJwk, encryptedPrivateKey, createdAtMs, expiresAtMs] };
}

/** Deletes all keys but this one, and returns their ids. */
export function deleteOtherKeysStatement(kid: string): BoundStatement {
  return { statement: deleteOtherKeysSql, parameters: [kid] };
}
