import { Failure } from '../../errors.ts';
import type { World } from '../../world.ts';

/** The name of a person or an organization in paths: `ada`, `grace-hopper`, `acme_2`. */
const LOGIN = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$/;

/** Throws `invalid` unless `login` can stand in a path and is not easily mistaken for another. */
export function checkLogin(login: string): void {
  if (LOGIN.test(login) && !login.includes('..')) return;
  throw new Failure(
    'invalid',
    `Cannot take the login "${login}": it must be 1 to 64 letters, digits, ".", "_" or "-", and begin and end with a letter or digit`,
    { field: 'login' },
  );
}

/** Invisible characters, but for those that join letters and emoji. */
const HIDDEN = /[\p{Cc}\p{Co}\p{Bidi_Control}]|(?!\u200c|\u200d|\ufe0e|\ufe0f)\p{DI}/u;
const VISIBLE = /[^\s\u2800\p{DI}]/u;

/**
 * Whether this name shows as what it is: it cannot look like another name, turn the direction of the text around it, or be
 * blank. Pages ask people to trust an application by its name.
 */
export function isReadableName(name: string): boolean {
  return VISIBLE.test(name) && !hasHiddenCharacter(name);
}

export function hasHiddenCharacter(text: string): boolean {
  return HIDDEN.test(text) || !text.isWellFormed();
}

/** Two logins that differ in case only are the same login. */
export function loginKey(login: string): string {
  return login.toLowerCase();
}

/** 24 hex digits, the format that clients of GitCode expect: the second of birth, then randomness. */
export function createOwnerId(world: Pick<World, 'nowMs' | 'randomBytes'>): string {
  const seconds = Math.floor(world.nowMs() / 1000).toString(16);
  return seconds.padStart(8, '0') + Buffer.from(world.randomBytes(8)).toString('hex');
}
