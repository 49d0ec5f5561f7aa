/**
 * The secrets of hooks that are being delivered to, opened once: opening a box and making its key ready costs as much as
 * all the rest of a signature. A changed box is noticed, since every delivery reads it again.
 */
import type { Vault } from '../../vault/vault.ts';
import { type HookSecrets, openSecrets, type SealedSecrets } from './hook.ts';

const MAX_HOOKS = 2000;

interface Entry {
  readonly sealed: SealedSecrets;
  readonly secrets: HookSecrets;
  /** Then the first of the former keys ends. */
  readonly untilMs: number;
}

export type ReadSecrets = (hookId: number, sealed: SealedSecrets, nowMs: number) => HookSecrets;

export function createSecretCache(vault: Vault): ReadSecrets {
  const entries = new Map<number, Entry>();
  return (hookId, sealed, nowMs) => {
    const found = entries.get(hookId);
    if (found !== undefined && nowMs < found.untilMs && isSame(found.sealed, sealed)) return found.secrets;
    const secrets = openSecrets(vault, hookId, sealed, nowMs);
    const untilMs = Math.min(...secrets.former.map((one) => one.untilMs));
    if (entries.size >= MAX_HOOKS) entries.clear();
    entries.set(hookId, { sealed, secrets, untilMs });
    return secrets;
  };
}

function isSame(one: SealedSecrets, other: SealedSecrets): boolean {
  return isSameBox(one.secret, other.secret) && isSameBox(one.previous_secret, other.previous_secret);
}

function isSameBox(one: Uint8Array | null, other: Uint8Array | null): boolean {
  return one === null || other === null ? one === other : Buffer.compare(one, other) === 0;
}
