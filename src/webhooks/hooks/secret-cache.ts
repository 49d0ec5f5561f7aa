/**
 * Caches the decrypted secrets of hooks until they change. Decrypting a secret and preparing its key costs as much as the rest of a
 * signature. Every delivery reads the ciphertext, which shows a change.
 */
import type { SecretCipher } from '../../encryption/secret-cipher.ts';
import { decryptSecrets, type EncryptedSecrets, type HookSecrets } from './hook.ts';

const MAX_HOOKS = 2000;

interface Entry {
  readonly encrypted: EncryptedSecrets;
  readonly secrets: HookSecrets;
  /** When the next former key expires. */
  readonly untilMs: number;
}

export type ReadSecrets = (hookId: number, encrypted: EncryptedSecrets, nowMs: number) => HookSecrets;

export function createSecretCache(cipher: SecretCipher): ReadSecrets {
  const entries = new Map<number, Entry>();
  return (hookId, encrypted, nowMs) => {
    const found = entries.get(hookId);
    if (found !== undefined && nowMs < found.untilMs && isSame(found.encrypted, encrypted)) return found.secrets;
    const secrets = decryptSecrets(cipher, hookId, encrypted, nowMs);
    const untilMs = Math.min(...secrets.previous.map((one) => one.untilMs));
    if (entries.size >= MAX_HOOKS) entries.clear();
    entries.set(hookId, { encrypted, secrets, untilMs });
    return secrets;
  };
}

function isSame(one: EncryptedSecrets, other: EncryptedSecrets): boolean {
  return isSameCiphertext(one.secret, other.secret) && isSameCiphertext(one.previous_secret, other.previous_secret);
}

function isSameCiphertext(one: Uint8Array | null, other: Uint8Array | null): boolean {
  return one === null || other === null ? one === other : Buffer.compare(one, other) === 0;
}
