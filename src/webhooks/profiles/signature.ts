/** Signs deliveries with HMAC as GitHub and Gitee do, and by the Standard Webhooks specification. */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { HookSecrets } from '../hooks/hook.ts';
import type { Attempt } from './profile.ts';

/** Signs like GitHub and GitCode: `sha256=` and the lower-case hex HMAC-SHA256 of the bytes as sent. */
export function signBody(key: Uint8Array, body: Uint8Array, algorithm: 'sha256' | 'sha1' = 'sha256'): string {
  return `${algorithm}=${createHmac(algorithm, readyKey(key)).update(body).digest('hex')}`;
}

/** Signs like Gitee, the time and not the body: base64 HMAC-SHA256 of `<milliseconds>\n<secret>`. */
export function signTimestamp(secret: Uint8Array, timestampMs: number): string {
  return createHmac('sha256', readyKey(secret)).update(`${timestampMs}\n`).update(secret).digest('base64');
}

/**
 * The headers of the Standard Webhooks specification 1.0. There is one signature for each valid key, so that a receiver may use either
 * while the key is being changed.
 */
export function standardHeaders(attempt: Attempt): Record<string, string> {
  const seconds = String(Math.floor(attempt.timestampMs / 1000));
  const signatures = listSecrets(attempt.secrets).map((key) => {
    const hmac = createHmac('sha256', readyStandardKey(key)).update(`${attempt.deliveryUuid}.${seconds}.`);
    return `v1,${hmac.update(attempt.body).digest('base64')}`;
  });
  return {
    'webhook-id': attempt.deliveryUuid,
    'webhook-timestamp': seconds,
    ...(signatures.length > 0 && { 'webhook-signature': signatures.join(' ') }),
  };
}

/** Compares in constant time. */
export function isSameSignature(expected: Buffer, given: Buffer): boolean {
  return expected.length === given.length && timingSafeEqual(expected, given);
}

function listSecrets({ current, previous }: HookSecrets): Buffer[] {
  return [current, ...previous.map((one) => one.secret)].filter((secret) => secret !== null);
}

const STANDARD_PREFIX = 'whsec_';

/** The bytes of a key: decoded from base64 after the prefix `whsec_`, else the UTF-8 bytes of the text. */
export function standardKey(secret: Buffer): Buffer {
  const text = secret.toString('utf8');
  return text.startsWith(STANDARD_PREFIX) ? Buffer.from(text.slice(STANDARD_PREFIX.length), 'base64') : secret;
}

// Caches of key objects: node:crypto takes longer to import raw bytes than to sign a body with them.
const readyKeys = new WeakMap<Uint8Array, KeyObject>();
const readyStandardKeys = new WeakMap<Uint8Array, KeyObject>();

function readyKey(secret: Uint8Array): KeyObject {
  return readyKeys.get(secret) ?? remember(readyKeys, secret, secret);
}

function readyStandardKey(secret: Buffer): KeyObject {
  return readyStandardKeys.get(secret) ?? remember(readyStandardKeys, secret, standardKey(secret));
}

function remember(keys: WeakMap<Uint8Array, KeyObject>, secret: Uint8Array, bytes: Uint8Array): KeyObject {
  const key = createSecretKey(bytes);
  keys.set(secret, key);
  return key;
}
