/** Decides how an update changes the key of a webhook, and refuses updates that would reveal the key to a caller who may not read it. */
import { Failure } from '../../errors.ts';
import { refuseScope } from '../../scopes.ts';
import { decryptSecrets, encryptChange, type Hook, type HookSecrets, type ProfileName } from '../hooks/hook.ts';
import type { HookChange } from '../hooks/hook-change-store.ts';
import type { StoredHook } from '../hooks/hook-store.ts';
import { sendsPassword } from '../profiles/profiles.ts';
import type { Management } from './management.ts';

/** The parameters of an update that concern the key; undefined ones stay as they are. */
export interface KeyParameters {
  readonly url?: string | undefined;
  readonly encryption_type?: number | undefined;
  readonly profile?: ProfileName | undefined;
  readonly password?: string | undefined;
  readonly remove_password?: boolean | undefined;
}

export interface KeyTarget {
  readonly stored: StoredHook;
  /** Whether the caller may change the webhook, but not read its key. */
  readonly hidesKey?: boolean;
}

/** Throws `forbidden` for an update that would send a hidden key to a receiver of the caller's choice, where the caller can read it. */
export function checkKeyStaysHidden(
  { cipher }: Management,
  { stored: { hook, encrypted }, hidesKey = false }: KeyTarget,
  parameters: KeyParameters,
  nowMs: number,
): void {
  if (!hidesKey || choosePassword(parameters) !== undefined || !canShowKey(hook, parameters)) return;
  if (hasKey(decryptSecrets(cipher, hook.id, encrypted, nowMs))) throw refuseToShow();
}

/** The change of the key; undefined if it stays. The same password is no rotation, since clients send back what they read. */
export function changeKey(
  { cipher }: Management,
  { stored: { hook, encrypted }, hidesKey = false }: KeyTarget,
  parameters: KeyParameters,
  nowMs: number,
): HookChange['secret'] {
  const password = choosePassword(parameters);
  if (password === undefined) return undefined;
  const keys = decryptSecrets(cipher, hook.id, encrypted, nowMs);
  // Otherwise hidden former keys would still sign deliveries to the new receiver.
  const endsFormer = hidesKey && hasKey(keys) && parameters.url !== undefined;
  if (readPassword(keys) === password && !endsFormer) return undefined;
  return encryptChange(cipher, hook.id, endsFormer ? NO_KEYS : keys, { secret: password, nowMs });
}

const NO_KEYS: HookSecrets = { current: null, previous: [] };

function hasKey({ current, previous }: HookSecrets): boolean {
  return current !== null || previous.length > 0;
}

/** Whether this update could reveal the key. Judged by the update alone, since a concurrent one may bring the rest of the change. */
function canShowKey(hook: Hook, { url, encryption_type, profile }: KeyParameters): boolean {
  if (url !== undefined || encryption_type === 0) return true;
  return profile !== undefined && hook.encryptionType === 0 && !sendsPassword(hook);
}

function refuseToShow(): Failure {
  return new Failure(
    'forbidden',
    'Cannot update the webhook: this change could show its password, which the token may not read; send a password with it or remove_password, or use a token with the scope admin',
    { ...refuseScope('admin').details, field: 'password' },
  );
}

/** Undefined: the password stays. An empty password does not remove it, since clients send back what they read. */
function choosePassword({ password, remove_password }: KeyParameters): string | undefined {
  const given = password === '' ? undefined : password;
  if (!remove_password) return given;
  if (given === undefined) return '';
  throw new Failure('invalid', 'Cannot update the webhook: remove_password must not come with a password', {
    field: 'remove_password',
  });
}

/** Refuses blanks at the ends: HTTP drops them around the value of a header, so the receiver would get another password. */
export function checkBlanks(password: string, action: string): void {
  if (!/^ | $/.test(password)) return;
  throw new Failure(
    'invalid',
    `Cannot ${action} the webhook: password must not begin or end with a blank: it travels in a header`,
    { field: 'password' },
  );
}

/** Checks a password that this update puts into a header. One that was there before may be older than the rule. */
export function checkHeaderPassword(
  { cipher }: Management,
  { hook, encrypted }: StoredHook,
  { encryptionType = hook.encryptionType, profile = hook.profile, secret, nowMs }: HookChange,
  parameters: KeyParameters,
): void {
  const isChanged = secret !== undefined || !sendsPassword(hook);
  if (sendsPassword({ encryptionType, profile }) && isChanged)
    checkBlanks(
      choosePassword(parameters) ?? readPassword(decryptSecrets(cipher, hook.id, encrypted, nowMs)),
      'update',
    );
}

function readPassword({ current }: HookSecrets): string {
  return current?.toString('utf8') ?? '';
}
