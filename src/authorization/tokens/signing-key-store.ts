/** Stores the keys that sign identity tokens, with encrypted private keys, and decides when the next one is due (rotation). */
import { type BoundStatement, type Procedure, procedure, type Store, statement } from '../../database/store.ts';
import { MAX_SKEW_MS } from '../../steady-clock.ts';

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
const deleteKeysSql = statement<Pick<KeyRow, 'kid'>>('delete-signing-keys', 'DELETE FROM signing_keys RETURNING kid');

/** Oldest first. */
export async function listSigningKeys(store: Pick<Store, 'read'>, nowMs: number): Promise<StoredKey[]> {
  return (await store.read(liveKeysSql, [nowMs])).map(toKey);
}

function toKey(row: KeyRow): StoredKey {
  return {
    kid: row.kid,
    publicJwk: row.public_jwk,
    encryptedPrivateKey: row.private_key,
    createdAtMs: row.created_at_ms,
    expiresAtMs: row.expires_at_ms,
  };
}

const ROTATE_AFTER_MS = 30 * 86_400_000;

/**
 * Returns true while the newest key is younger than `ROTATE_AFTER_MS`. Keys dated in the future would delay the rotation, so they
 * are ignored. If all are in the future, the clock is behind, and the newest key counts.
 */
export function hasFreshKey(keys: readonly StoredKey[], nowMs: number): boolean {
  const newest = keys.findLast((key) => key.createdAtMs <= nowMs + MAX_SKEW_MS) ?? keys.at(-1);
  return newest !== undefined && newest.createdAtMs + ROTATE_AFTER_MS > nowMs;
}

export interface NextKey {
  readonly key: StoredKey;
  readonly nowMs: number;
}

/** Stores the key unless there is a fresh one: while this process made a key, another may have stored or replaced one. */
export const insertKeyUnlessFresh: Procedure<NextKey, void> = procedure(
  import.meta.url,
  'insertKeyUnlessFresh',
  async (transaction, { key, nowMs }) => {
    const keys = (await transaction.run(liveKeysSql, [nowMs])).map(toKey);
    if (!hasFreshKey(keys, nowMs)) await transaction.runAll([insertKeyStatement(key)]);
  },
);

export interface KeyReplacement {
  readonly key: StoredKey;
  readonly audit: BoundStatement;
}

/** Replaces all keys by this one, and returns their ids. Of two concurrent calls, the later one replaces the key of the earlier. */
export const replaceAllKeys: Procedure<KeyReplacement, string[]> = procedure(
  import.meta.url,
  'replaceAllKeys',
  async (transaction, { key, audit }) => {
    const deleted = await transaction.run(deleteKeysSql, []);
    await transaction.runAll([insertKeyStatement(key), audit]);
    return deleted.map(({ kid }) => kid);
  },
);

function insertKeyStatement(key: StoredKey): BoundStatement {
  const { kid, publicJwk, encryptedPrivateKey, createdAtMs, expiresAtMs } = key;
  return { statement: insertKeySql, parameters: [kid, publicJwk, encryptedPrivateKey, createdAtMs, expiresAtMs] };
}
