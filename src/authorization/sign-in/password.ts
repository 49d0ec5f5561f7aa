/** Decides which passwords are allowed, and hashes and verifies them (Argon2id). */
import { hash, type Options, parseOptions, verify } from '@node-rs/argon2';
import { Failure } from '../../errors.ts';
import { createHashQueue, type HashCaller } from './password-hash-queue.ts';

/** Argon2id by OWASP's Password Storage Cheat Sheet: 19 MiB, two passes, one lane (the library's algorithm is id). */
const PARAMETERS: Options = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

const MIN_LENGTH = 10;
const MAX_LENGTH = 256;

/** The one queue of the process: it bounds how many threads and how much memory hashing takes. */
const queue = createHashQueue();

/** The caller for a command, which has the queue of its process to itself. */
const COMMAND: HashCaller = { key: 'command', isKnown: true };

let hashes = 0;

/** How many passwords this process has hashed, to store or to compare. Nothing else in it costs as much. */
export function countHashes(): number {
  return hashes;
}

const { memoryCost, timeCost, parallelism } = PARAMETERS;
/** A hash of zeros, which no password has. The password of an unknown login is compared with it, to take the same time. */
const UNKNOWN_LOGIN_HASH = `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${'A'.repeat(22)}$${'A'.repeat(43)}`;

/**
 * Throws `invalid` for a password that is too short or too long, has fewer than 4 different characters, or has fewer than 5
 * characters without the login (NIST SP 800-63B §3.1.1).
 */
export function checkNewPassword(password: string, owner: { readonly login: string }): void {
  const length = Array.from(password).length;
  if (length < MIN_LENGTH || length > MAX_LENGTH)
    throw refuse(`it must be ${MIN_LENGTH} to ${MAX_LENGTH} characters long, got ${length}`);
  if (new Set(password).size < 4) throw refuse('it must have at least 4 different characters');
  if (password.toLowerCase().replaceAll(owner.login.toLowerCase(), '').length < MIN_LENGTH / 2)
    throw refuse('it must be more than the login');
}

function refuse(reason: string): Failure {
  return new Failure('invalid', `Cannot use the password: ${reason}`, { field: 'password' });
}

/** The same character may be typed in several ways; NFKC makes them one before hashing. */
function normalize(password: string): string {
  return password.normalize('NFKC');
}

/** Throws `unavailable` if the hash queue is full for the caller; so does `isPassword`. */
export function hashPassword(password: string, caller: HashCaller = COMMAND): Promise<string> {
  return queue.run(caller, () => {
    hashes += 1;
    return hash(normalize(password), PARAMETERS);
  });
}

/** Throws `unavailable` if the hash queue is full for the caller. Call it before the attempt is counted. */
export function checkHashPlace(caller: HashCaller): void {
  queue.check(caller);
}

/** Takes the same time whether or not there is a hash to compare with. */
export async function isPassword(
  passwordHash: string | null | undefined,
  password: string,
  caller: HashCaller,
): Promise<boolean> {
  const matches = await queue.run(caller, async () => {
    hashes += 1;
    return await verify(passwordHash ?? UNKNOWN_LOGIN_HASH, normalize(password.slice(0, 4 * MAX_LENGTH)));
  });
  return matches && typeof passwordHash === 'string';
}

/** Whether the hash was made with other parameters than the present ones. */
export function needsRehash(passwordHash: string): boolean {
  const made = parseOptions(passwordHash);
  return (
    made.memoryCost !== PARAMETERS.memoryCost ||
    made.timeCost !== PARAMETERS.timeCost ||
    made.parallelism !== PARAMETERS.parallelism
  );
}
