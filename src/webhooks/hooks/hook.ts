/** Defines a webhook and the rules for its settings and secrets, and how long a former secret still signs. */
import type { SecretCipher } from '../../encryption/secret-cipher.ts';
import type { EventKind } from '../events/event-kind.ts';

/** GitCode's name for how the password proves the sender. 0: it travels in a header. 1: it is the key of an HMAC over the body. */
export type EncryptionType = 0 | 1;

export const PROFILE_NAMES = ['gitcode', 'gitee', 'github', 'gitlab'] as const;
/** The code host whose headers, body format and signature the receiver expects. */
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
  /** Body of the last answer, or the reason why it is missing; null on a fresh hook. */
  readonly result: string | null;
  /** Status of the last answer; 0 on a fresh hook and without an answer. */
  readonly resultCode: number;
}

/**
 * The keys that sign a delivery. Former keys still sign for a time after a change, in `webhook-signature` only, so that a receiver
 * that reads this header can change its key without a gap. The headers of a platform have the current key alone.
 */
export interface HookSecrets {
  readonly current: Buffer | null;
  readonly former: readonly FormerKey[];
}

export interface FormerKey {
  readonly key: Buffer;
  readonly untilMs: number;
}

/** The encrypted columns of a hook's row. */
export interface EncryptedSecrets {
  readonly secret: Uint8Array | null;
  /** All former keys that are still valid, in one ciphertext. */
  readonly previous_secret: Uint8Array | null;
  /** Until when the last of them is valid. */
  readonly previous_until_ms: number | null;
}

/** How long `webhook-signature` has a signature by a former key too. */
const ROTATION_MS = 24 * 3600 * 1000;
/** After more changes in that time the oldest former key ends sooner: each adds a signature to every request. */
export const MAX_FORMER_KEYS = 9;

export function hookAssociatedData(hookId: number): string {
  return `hook:${hookId}`;
}

export function encryptSecret(cipher: SecretCipher, hookId: number, secret: string): Uint8Array | null {
  return secret === '' ? null : cipher.encrypt(secret, hookAssociatedData(hookId));
}

export function decryptSecrets(
  cipher: SecretCipher,
  hookId: number,
  encrypted: EncryptedSecrets,
  nowMs: number,
): HookSecrets {
  const { previous_secret: list, previous_until_ms: untilMs } = encrypted;
  const former =
    list === null || untilMs === null ? [] : parseFormer(cipher.decrypt(list, hookAssociatedData(hookId)), untilMs);
  return {
    current: encrypted.secret === null ? null : cipher.decrypt(encrypted.secret, hookAssociatedData(hookId)),
    former: former.filter((one) => one.untilMs > nowMs),
  };
}

/** The columns of a hook whose key changes from what `secrets` has to `key`. An empty one takes the key away. */
export function encryptChange(
  cipher: SecretCipher,
  hookId: number,
  secrets: HookSecrets,
  change: KeyChange,
): EncryptedSecrets {
  const { key, nowMs } = change;
  const fromNow = secrets.current === null ? [] : [{ key: secrets.current, untilMs: nowMs + ROTATION_MS }];
  // A key that comes back is current, and a former one is kept once, for as long as it was promised last.
  const others = secrets.former.filter((one) => one.key.toString() !== secrets.current?.toString());
  const former = [...fromNow, ...others].filter((one) => one.key.toString() !== key).slice(0, MAX_FORMER_KEYS);
  return {
    secret: encryptSecret(cipher, hookId, key),
    previous_secret: former.length === 0 ? null : cipher.encrypt(renderFormer(former), hookAssociatedData(hookId)),
    previous_until_ms: former.length === 0 ? null : Math.max(...former.map((one) => one.untilMs)),
  };
}

export interface KeyChange {
  readonly key: string;
  readonly nowMs: number;
}

/** No key contains it, so it distinguishes a list from the single former key that earlier versions encrypted. */
const LIST_MARK = '\0';

function renderFormer(former: readonly FormerKey[]): string {
  const list = former.map(({ key, untilMs }) => ({ key: key.toString('base64'), until_ms: untilMs }));
  return LIST_MARK + JSON.stringify(list);
}

function parseFormer(opened: Buffer, untilMs: number): FormerKey[] {
  const text = opened.toString('utf8');
  if (!text.startsWith(LIST_MARK)) return [{ key: opened, untilMs }];
  const list = JSON.parse(text.slice(LIST_MARK.length)) as readonly { key: string; until_ms: number }[];
  return list.map((one) => ({ key: Buffer.from(one.key, 'base64'), untilMs: one.until_ms }));
}
