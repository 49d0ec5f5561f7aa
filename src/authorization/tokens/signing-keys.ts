/**
 * Decides when a signing key is created, published (JWKS), used and retired. A key is published a while before it signs and long
 * after, so that no client ever meets a token whose key it cannot find: created → published → signs (after 10 minutes, or at
 * once when there is no other) → followed by the next after 30 days → published 30 days more.
 */
import { createPrivateKey, generateKeyPair as generateKeyPairCallback, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { calculateJwkThumbprint, exportJWK, type JWK } from 'jose';
import type { Store } from '../../database/store.ts';
import type { SecretCipher } from '../../encryption/secret-cipher.ts';
import { Failure } from '../../errors.ts';
import { MAX_SKEW_MS } from '../../steady-clock.ts';
import type { World } from '../../world.ts';
import { insertSigningKey, listSigningKeys, type StoredKey } from './signing-key-store.ts';

export interface SigningKey {
  readonly kid: string;
  readonly privateKey: KeyObject;
}

export interface SigningKeys {
  /** The key that signs now. Creates the first key when the store has none. */
  findCurrent(): Promise<SigningKey>;
  /** Lists the keys that the JWKS shows. */
  listPublic(): Promise<JWK[]>;
  /** Makes the next key when the newest is old. */
  ensureFresh(): Promise<void>;
}

const DAY_MS = 86_400_000;
const SIGNS_AFTER_MS = 600_000;
const ROTATE_AFTER_MS = 30 * DAY_MS;
const PUBLISHED_FOR_MS = 60 * DAY_MS;
const CACHE_MS = 60_000;

const generateKeyPair = promisify(generateKeyPairCallback);

interface KeyDependencies {
  readonly store: Store;
  readonly cipher: SecretCipher;
  readonly world: World;
}

export function createSigningKeys({ store, cipher, world }: KeyDependencies): SigningKeys {
  // The time is of the monotonic clock: a time of a clock that was ahead would keep the key until then.
  let cached: { readonly key: SigningKey; readonly untilMs: number } | undefined;

  async function ensureFresh(): Promise<void> {
    const nowMs = world.nowMs();
    // Keys dated ahead would delay the rotation, so they are ignored. If all are, the clock is behind: the newest is used.
    const keys = await listSigningKeys(store, nowMs);
    const newest = keys.findLast((key) => key.createdAtMs <= nowMs + MAX_SKEW_MS) ?? keys.at(-1);
    if (newest !== undefined && newest.createdAtMs + ROTATE_AFTER_MS > nowMs) return;
    await insertSigningKey(store, await createKey(cipher, nowMs));
  }

  async function findCurrent(): Promise<SigningKey> {
    const nowMs = world.nowMs();
    if (cached !== undefined && cached.untilMs > world.monotonicMs()) return cached.key;
    await ensureFresh();
    const keys = await listSigningKeys(store, nowMs);
    const current = keys.findLast((key) => key.createdAtMs + SIGNS_AFTER_MS <= nowMs) ?? keys[0];
    if (current === undefined) throw new Failure('internal', 'Cannot sign: there is no key');
    const key = openKey(cipher, current);
    cached = { key, untilMs: world.monotonicMs() + CACHE_MS };
    return key;
  }

  async function listPublic(): Promise<JWK[]> {
    await findCurrent();
    const keys = await listSigningKeys(store, world.nowMs());
    return keys.map((key) => JSON.parse(key.publicJwk) as JWK);
  }

  return { findCurrent, listPublic, ensureFresh };
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
