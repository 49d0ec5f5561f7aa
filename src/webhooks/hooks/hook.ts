/** Defines a webhook and the rules for its settings and secrets, and how long a previous secret still signs. */
import type { SecretCipher } from '../../encryption/secret-cipher.ts';
import type { EventKind } from '../events/event-kind.ts';

/**
 * GitCode's `encryption_type`. 0: the secret is sent in a header. 1: the secret is the key of an HMAC over the body.
 */
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
  /** The kinds of events to which it is subscribed. */
  readonly events: Readonly<Record<EventKind, boolean>>;
  readonly createdAtMs: number;
  readonly disabledAtMs: number | null;
  readonly disabledReason: string | null;
  /** Body of the last answer, or the reason why it is missing; null for a new hook. */
  readonly result: string | null;
  /** Status of the last answer; 0 for a new hook and without an answer. */
  readonly resultCode: number;
}

/**
 * The secrets that sign a delivery. Previous secrets still sign for a day after a change, in `webhook-signature` only, so that a receiver
 * that checks this header can change its secret without a gap. The headers of a code host are signed with the current secret only.
 */
export interface HookSecrets {
  readonly current: Buffer | null;
  readonly previous: readonly PreviousSecret[];
}

export interface PreviousSecret {
  readonly secret: Buffer;
  readonly untilMs: number;
}

/** The encrypted columns of a hook's row. */
export interface EncryptedSecrets {
  readonly secret: Uint8Array | null;
  /** All previous secrets that are still valid, in one ciphertext. */
  readonly previous_secret: Uint8Array | null;
  /** Until when the last of the previous secrets is valid. */
  readonly previous_until_ms: number | null;
}

/** How long `webhook-signature` has a signature by a previous secret too. */
const ROTATION_MS = 24 * 3600 * 1000;
/** With more changes in that time the oldest previous secret ends sooner, since each valid secret adds a signature to every request. */
export const MAX_PREVIOUS_SECRETS = 9;

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
  const previous =
    list === null || untilMs === null ? [] : parsePrevious(cipher.decrypt(list, hookAssociatedData(hookId)), untilMs);
  return {
    current: encrypted.secret === null ? null : cipher.decrypt(encrypted.secret, hookAssociatedData(hookId)),
    previous: previous.filter((one) => one.untilMs > nowMs),
  };
}

/** The columns of a hook whose secret changes to `secret`; an empty text removes it. `secrets` are those before the change. */
export function encryptChange(
  cipher: SecretCipher,
  hookId: number,
  secrets: HookSecrets,
  change: SecretChange,
): EncryptedSecrets {
  const { secret, nowMs } = change;
  const fromNow = secrets.current === null ? [] : [{ secret: secrets.current, untilMs: nowMs + ROTATION_MS }];
  // If the new secret equals a previous one, drop it from the previous ones. Keep each previous secret once, with its latest expiry.
  const others = secrets.previous.filter((one) => one.secret.toString() !== secrets.current?.toString());
  const previous = [...fromNow, ...others]
    .filter((one) => one.secret.toString() !== secret)
    .slice(0, MAX_PREVIOUS_SECRETS);
  return {
    secret: encryptSecret(cipher, hookId, secret),
    previous_secret:
      previous.length === 0 ? null : cipher.encrypt(renderPrevious(previous), hookAssociatedData(hookId)),
    previous_until_ms: previous.length === 0 ? null : Math.max(...previous.map((one) => one.untilMs)),
  };
}

export interface SecretChange {
  readonly secret: string;
  readonly nowMs: number;
}

/** Marks a list. No secret contains this character, and earlier versions encrypted a single previous secret without it. */
const LIST_MARK = '\0';

function renderPrevious(previous: readonly PreviousSecret[]): string {
  const list = previous.map(({ secret, untilMs }) => ({ key: secret.toString('base64'), until_ms: untilMs }));
  return LIST_MARK + JSON.stringify(list);
}

function parsePrevious(opened: Buffer, untilMs: number): PreviousSecret[] {
  const text = opened.toString('utf8');
  if (!text.startsWith(LIST_MARK)) return [{ secret: opened, untilMs }];
  const list = JSON.parse(text.slice(LIST_MARK.length)) as readonly { key: string; until_ms: number }[];
  return list.map((one) => ({ secret: Buffer.from(one.key, 'base64'), untilMs: one.until_ms }));
}
