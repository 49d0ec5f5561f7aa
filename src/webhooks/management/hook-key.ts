/** Decides how a change of a webhook changes its key, and refuses changes that would show the key to a caller who may not read it. */
import { Failure } from '../../errors.ts';
import { refuseScope } from '../../scopes.ts';
import { decryptSecrets, encryptChange, type Hook, type HookSecrets, type ProfileName } from '../hooks/hook.ts';
import type { HookChange } from '../hooks/hook-change-store.ts';
import type { StoredHook } from '../hooks/hook-store.ts';
import { sendsPassword } from '../profiles/profiles.ts';
import type { Management } from './management.ts';

/** Of a change, what concerns the key. Undefined: it stays as it is. */
export interface KeyParameters {
  readonly url?: string | undefined;
  readonly encryption_type?: number | undefined;
  readonly profile?: ProfileName | undefined;
  readonly password?: string | undefined;
  readonly remove_password?: boolean | undefined;
}

export interface KeyTarget {
  readonly stored: StoredHook;
  /** The caller may change the webhook and not read its key. */
  readonly hidesKey?: boolean;
}

/** Throws `forbidden` for a change by which a hidden key would reach a receiver that the caller chose, who would read it there. */
export function checkKeyStaysHidden(
  { cipher }: Management,
  { stored: { hook, encrypted }, hidesKey = false }: KeyTarget,
  parameters: KeyParameters,
  nowMs: number,
): void {
  if (!hidesKey || choosePassword(parameters) !== undefined || !canShowKey(hook, parameters)) return;
  if (hasKey(decryptSecrets(cipher, hook.id, encrypted, nowMs))) throw refuseToShow();
}

/** Undefined: the key stays. Clients that send everything they read change nothing by it: the same password again is no rotation. */
export function changeKey(
  { cipher }: Management,
  { stored: { hook, encrypted }, hidesKey = false }: KeyTarget,
  parameters: KeyParameters,
  nowMs: number,
): HookChange['secret'] {
  const password = choosePassword(parameters);
  if (password === undefined) return undefined;
  const keys = decryptSecrets(cipher, hook.id, encrypted, nowMs);
  // Hidden keys would go on signing what another receiver gets.
  const endsFormer = hidesKey && hasKey(keys) && parameters.url !== undefined;
  if (readPassword(keys) === password && !endsFormer) return undefined;
  return encryptChange(cipher, hook.id, endsFormer ? NO_KEYS : keys, { secret: password, nowMs });
}

const NO_KEYS: HookSecrets = { current: null, previous: [] };

function hasKey({ current, previous }: HookSecrets): boolean {
  return current !== null || previous.length > 0;
}

/** Judged by the change, not by what it makes of the hook: another change at the same moment may do the other half. */
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

/** Undefined: it stays. An empty one cannot say that there is to be none: clients send back what they read. */
function choosePassword({ password, remove_password }: KeyParameters): string | undefined {
  const given = password === '' ? undefined : password;
  if (!remove_password) return given;
  if (given === undefined) return '';
  throw new Failure('invalid', 'Cannot update the webhook: remove_password must not come with a password', {
    field: 'remove_password',
  });
}

/** HTTP drops blanks around the value of a header. What the receiver got would never be the password that it knows. */
export function checkBlanks(password: string, action: string): void {
  if (!/^ | $/.test(password)) return;
  throw new Failure(
    'invalid',
    `Cannot ${action} the webhook: password must not begin or end with a blank: it travels in a header`,
    { field: 'password' },
  );
}

/** Checks the password that a change puts into a header. What it leaves as it is may be from before the rule. */
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
