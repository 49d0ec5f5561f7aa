/**
 * The secrets of hooks that are being delivered to, opened once: opening a box and making its key ready costs as much as
 * all the rest of a signature. A changed box is noticed, since every delivery reads it anew.
 */
import type { Vault } from '../vault/vault.ts';
import { type HookSecrets, openSecrets, type SealedSecrets } from './hook.ts';

const MAX_HOOKS = 2000;

interface Entry {
  readonly sealed: SealedSecrets;
  readonly secrets: HookSecrets;
}

export type ReadSecrets = (hookId: number, sealed: SealedSecrets, nowMs: number) => HookSecrets;

export function createSecretCache(vault: Vault): ReadSecrets {
  const entries = new Map<number, Entry>();
  return (hookId, sealed, nowMs) => {
    const found = entries.get(hookId);
    // The second key ends by time, not by a change: while there is one, it is asked each time.
    if (found !== undefined && sealed.previous_until_ms === null && isSame(found.sealed, sealed)) return found.secrets;
    const secrets = openSecrets(vault, hookId, sealed, nowMs);
    if (entries.size >= MAX_HOOKS) entries.clear();
    entries.set(hookId, { sealed, secrets });
    return secrets;
  };
}

function isSame(one: SealedSecrets, other: SealedSecrets): boolean {
  if (one.previous_until_ms !== other.previous_until_ms) return false;
  if (one.secret === null || other.secret === null) return one.secret === other.secret;
  return Buffer.compare(one.secret, other.secret) === 0;
}
