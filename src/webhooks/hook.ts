import type { Vault } from '../vault/vault.ts';
import type { EventKind } from './event-kind.ts';

/** 0: the password itself travels in a header. 1: it is the key of a signature over the body. */
export type EncryptionType = 0 | 1;

export const PROFILE_NAMES = ['gitcode', 'gitee', 'github', 'gitlab'] as const;
/** Whose deliveries the receiver expects. */
export type ProfileName = (typeof PROFILE_NAMES)[number];

export interface Hook {
  readonly id: number;
  readonly repositoryId: number;
  readonly url: string;
  readonly encryptionType: EncryptionType;
  readonly profile: ProfileName;
  /** Which kinds it wants. */
  readonly events: Readonly<Record<EventKind, boolean>>;
  readonly createdAtMs: number;
  readonly disabledAtMs: number | null;
  readonly disabledReason: string | null;
  /** Body of the last answer, or why there was none; null on a fresh hook. */
  readonly result: string | null;
  /** Status of the last answer; 0 on a fresh hook and when there was none. */
  readonly resultCode: number;
}

/** What signs a delivery. `previous` is there for a time after a change, so that a receiver can move over without a gap. */
export interface HookSecrets {
  readonly current: Buffer | null;
  readonly previous: Buffer | null;
}

/** The sealed columns of a hook's row. */
export interface SealedSecrets {
  readonly secret: Uint8Array | null;
  readonly previous_secret: Uint8Array | null;
  readonly previous_until_ms: number | null;
}

/** How long deliveries are signed with the former key too. */
export const ROTATION_MS = 24 * 3600 * 1000;

export function bindingOf(hookId: number): string {
  return `hook:${hookId}`;
}

export function sealSecret(vault: Vault, hookId: number, secret: string): Uint8Array | null {
  return secret === '' ? null : vault.seal(secret, bindingOf(hookId));
}

export function openSecrets(vault: Vault, hookId: number, sealed: SealedSecrets, nowMs: number): HookSecrets {
  const isRotating = sealed.previous_until_ms !== null && sealed.previous_until_ms > nowMs;
  return {
    current: openBox(vault, hookId, sealed.secret),
    previous: isRotating ? openBox(vault, hookId, sealed.previous_secret) : null,
  };
}

function openBox(vault: Vault, hookId: number, box: Uint8Array | null): Buffer | null {
  return box === null ? null : vault.open(box, bindingOf(hookId));
}
