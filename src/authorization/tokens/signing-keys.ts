/**
 * Creates signing keys, publishes them (JWKS), and finds the one that signs. A key is published for a while before it signs and
 * long after, so that a client always finds the key of a token: created and published → signs (after 10 minutes, or at once if
 * there is no other) → replaced by the next key after 30 days → published for 30 more days. A leaked key is replaced at once:
 * for each signature, every process reads from the store which key signs.
 */
import { createPrivateKey, generateKeyPair as generateKeyPairCallback, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { calculateJwkThumbprint, exportJWK, type JWK } from 'jose';
import type { BoundStatement, Store } from '../../database/store.ts';
import type { SecretCipher } from '../../encryption/secret-cipher.ts';
import { Failure } from '../../errors.ts';
import type { World } from '../../world.ts';
import {
  hasFreshKey,
  insertKeyUnlessFresh,
  listSigningKeys,
  replaceAllKeys,
  type StoredKey,
} from './signing-key-store.ts';

export interface SigningKey {
  readonly kid: string;
  readonly privateKey: KeyObject;
}

export interface SigningKeys {
  /** The key that signs now. Creates the first key when the store has none. */
  findCurrent(): Promise<SigningKey>;
  /** Lists the public keys of the JWKS. */
  listPublic(): Promise<JWK[]>;
  /** Creates the next key if the newest is 30 days old. */
  ensureFresh(): Promise<void>;
}

const DAY_MS = 86_400_000;
const SIGNS_AFTER_MS = 600_000;
const PUBLISHED_FOR_MS = 60 * DAY_MS;

const generateKeyPair = promisify(generateKeyPairCallback);

export interface KeyDependencies {
  readonly store: Store;
  readonly cipher: SecretCipher;
  readonly world: World;
}

export function createSigningKeys({ store, cipher, world }: KeyDependencies): SigningKeys {
  // Cached, because decrypting a key costs more than the read that finds which one signs.
  let opened: SigningKey | undefined;
  let making: Promise<void> | undefined;

  async function ensureKeys(): Promise<StoredKey[]> {
    const keys = await listSigningKeys(store, world.nowMs());
    if (hasFreshKey(keys, world.nowMs())) return keys;
    // All callers wait for one key; otherwise each would make one, which is then published for 60 days.
    making ??= makeKey().finally(() => {
      making = undefined;
    });
    await making;
    return await listSigningKeys(store, world.nowMs());
  }

  async function makeKey(): Promise<void> {
    const key = await createKey(cipher, world.nowMs());
    await store.call(insertKeyUnlessFresh, { key, nowMs: world.nowMs() });
  }

  async function findCurrent(): Promise<SigningKey> {
    const current = findSigning(await ensureKeys(), world.nowMs());
    if (current === undefined) throw new Failure('internal', 'Cannot sign: there is no key');
    if (opened?.kid !== current.kid) opened = openKey(cipher, current);
    return opened;
  }

  return {
    findCurrent,
    listPublic: async () => (await ensureKeys()).map((key) => JSON.parse(key.publicJwk) as JWK),
    ensureFresh: async () => void (await ensureKeys()),
  };
}

/** Returns the key that signs: the newest that was published 10 minutes ago, or else the oldest. `keys`: oldest first. */
export function findSigning(keys: readonly StoredKey[], nowMs: number): StoredKey | undefined {
  return keys.findLast((key) => key.createdAtMs + SIGNS_AFTER_MS <= nowMs) ?? keys[0];
}

/**
 * Replaces every key, including one that has not signed yet: a thief who has read the store has it too. The new key signs at
 * once; clients that read the JWKS again refuse tokens of the old keys. Returns the new id and the replaced ones.
 */
export async function replaceSigningKeys(
  { store, cipher, world }: KeyDependencies,
  audit: BoundStatement,
): Promise<{ readonly kid: string; readonly replaced: string[] }> {
  const key = await createKey(cipher, world.nowMs());
  return { kid: key.kid, replaced: await store.call(replaceAllKeys, { key, audit }) };
}

async function createKey(cipher: SecretCipher, nowMs: number): Promise<StoredKey> {
  const { publicKey, privateKey } = await generateKeyPair('rsa', { modulusLength: 2048 });
  const jwk = await exportJWK(publicKey);
  const kid = await calculateJwkThumbprint(jwk);
  return {
    kid,
    publicJwk: JSON.stringify({ ...jwk, kid, use: 'sig', alg: 'RS256' }),
    encryptedPrivateKey: cipher.encrypt(
      privateKey.export({ type: 'pkcs8', format: 'der' }),
      signingKeyAssociatedData(kid),
    ),
    createdAtMs: nowMs,
    expiresAtMs: nowMs + PUBLISHED_FOR_MS,
  };
}

function openKey(cipher: SecretCipher, { kid, encryptedPrivateKey }: StoredKey): SigningKey {
  const der = cipher.decrypt(encryptedPrivateKey, signingKeyAssociatedData(kid));
  return { kid, privateKey: createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }) };
}

export function signingKeyAssociatedData(kid: string): string {
  return `signing-key:${kid}`;
}
