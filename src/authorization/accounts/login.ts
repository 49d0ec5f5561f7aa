/** Decides which logins and names people and organizations may have. */
import { Failure } from '../../errors.ts';
import type { World } from '../../world.ts';

/** The name of a person or an organization in paths: `ada`, `grace-hopper`, `acme_2`. */
const LOGIN = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$/;

/** Throws `invalid` unless `login` can be part of a path and is not easily mistaken for another one. */
export function checkLogin(login: string): void {
  if (LOGIN.test(login) && !login.includes('..')) return;
  throw new Failure(
    'invalid',
    `Cannot use the login "${login}": it must be 1 to 64 letters, digits, ".", "_" or "-", and begin and end with a letter or digit`,
    { field: 'login' },
  );
}

/** The flags of England, Scotland and Wales: a black flag, then tag characters that are invisible on their own. */
const FLAGS =
  /(?<=\u{1f3f4})\u{e0067}\u{e0062}(?:\u{e0065}\u{e006e}\u{e0067}|\u{e0073}\u{e0063}\u{e0074}|\u{e0077}\u{e006c}\u{e0073})\u{e007f}/gu;
/** Variation selectors, each after the Han or Mongolian character whose form it chooses. */
const VARIANTS =
  /(?<=\p{Script=Han})[\ufe00-\ufe02\u{e0100}-\u{e01ef}]|(?<=\p{Script=Mongolian})[\u180b-\u180d\u180f]/gu;
/**
 * Invisible characters and line ends. Joiners and emoji selectors (U+200C, U+200D, U+FE0E, U+FE0F) are allowed only where they
 * have an effect: between letters of scripts that do not join they are invisible.
 */
const HIDDEN =
  /[\p{Cc}\p{Co}\p{Bidi_Control}\u2028\u2029\ufff9-\ufffb]|(?!\u200c|\u200d|\ufe0e|\ufe0f)\p{DI}|(?<=^|[\s\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}])(?:\u200c|\u200d|\ufe0e|\ufe0f)+(?=[\s\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Nd}]|$)/u;
const VISIBLE = /[^\s\u2800\p{DI}]/u;

/**
 * Whether people see this name as it is: it has no hidden characters with which it could look like another name, does not
 * change the direction of the text around it, and is not blank. Pages ask people to trust an application by its name.
 */
export function isReadableName(name: string): boolean {
  return VISIBLE.test(name) && !hasHiddenCharacter(name);
}

export function hasHiddenCharacter(text: string): boolean {
  return HIDDEN.test(text.replaceAll(FLAGS, '').replaceAll(VARIANTS, '')) || !text.isWellFormed();
}

const MAX_NAME_LENGTH = 100;

/** Throws `invalid` unless a person or an organization may have this name. `storedName`, which it has now, is always allowed. */
export function checkName(name: string, storedName?: string): void {
  if (name.trim() === '' || name.length > MAX_NAME_LENGTH)
    throw new Failure('invalid', `Cannot save the profile: the name must be 1 to ${MAX_NAME_LENGTH} characters`, {
      field: 'name',
    });
  if (name.trim() !== storedName && !isReadableName(name))
    throw new Failure('invalid', 'Cannot save the profile: the name must be readable, without hidden characters', {
      field: 'name',
    });
}

/** Shortens a name to what can be stored, or returns the login if the name is not readable. */
export function toName(text: string, login: string): string {
  // The cut may split a surrogate pair.
  const name = text
    .trim()
    .slice(0, 100)
    .replace(/[\ud800-\udbff]$/, '')
    .toWellFormed();
  return isReadableName(name) ? name : login;
}

/** Returns the characters of a name that a login can have, without the domain of an address; may be empty. */
export function toLogin(text: string): string {
  // Cut first: normalizing takes quadratic time in a run of combining marks, and people choose their names at the provider.
  const letters = text
    .slice(0, 200)
    .replace(/(?<=.)@.*/s, '')
    .normalize('NFKD')
    .replace(/[^A-Za-z0-9._-]/g, '')
    .replace(/\.{2,}/g, '.')
    .slice(0, 60);
  return letters.replace(/^[._-]+|[._-]+$/g, '');
}

/** Logins that differ only in letter case have the same key. */
export function loginKey(login: string): string {
  return login.toLowerCase();
}

/** 24 hex digits, as clients of GitCode expect: 8 for the Unix time in seconds, then 16 random ones. */
export function createOwnerId(world: Pick<World, 'nowMs' | 'randomBytes'>): string {
  const seconds = Math.floor(world.nowMs() / 1000).toString(16);
  return seconds.padStart(8, '0') + Buffer.from(world.randomBytes(8)).toString('hex');
}
