/**
 * Stores the logins of `trivet login`, one for each service, in a file that only its person can read. As `gh` does, the file is
 * in the person's configuration folder (`$XDG_CONFIG_HOME/trivet/hosts.json`). Commands change it one after the other.
 */
import { chmod, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { tryLockFile } from '../database/startup/file-lock.ts';
import { describeError, Failure } from '../errors.ts';

export interface Login {
  readonly token: string;
  /** Undefined for a token that was given on standard input. */
  readonly refreshToken?: string | undefined;
  readonly expiresAtMs?: number | undefined;
  readonly scope?: string | undefined;
  /** Undefined when the token may not read it. */
  readonly user?: string | undefined;
}

export interface Logins {
  /** The service that commands use unless another is named: that of the last login. */
  readonly preferred?: string | undefined;
  readonly hosts: Readonly<Record<string, Login>>;
}

const FILE = 'hosts.json';
const LOCK_FILE = 'hosts.lock';
/** How long to wait for the lock: longer than a service may take to refresh a login. */
const LONGEST_WAIT_MS = 90_000;
const POLL_MS = 50;

export async function readLogins(folder: string | undefined): Promise<Logins> {
  if (folder === undefined) return { hosts: {} };
  const path = join(folder, FILE);
  try {
    return JSON.parse(await readFile(path, 'utf8')) as Logins;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { hosts: {} };
    throw new Failure('invalid', `Cannot read the logins in "${path}": ${describeError(error)}`);
  }
}

export interface LockedLogins extends Disposable {
  readonly read: () => Promise<Logins>;
  readonly update: (change: (logins: Logins) => Logins) => Promise<void>;
}

/**
 * Keeps other commands from changing the logins until it is disposed. The file is rewritten unchanged first, so that a write error
 * is found before a service issues a single-use token.
 */
export async function lockLogins(folder: string | undefined): Promise<LockedLogins> {
  if (folder === undefined)
    throw new Failure('invalid', 'Cannot keep the login: neither XDG_CONFIG_HOME nor HOME is set');
  using undo = new DisposableStack();
  const lock = undo.use(await waitForLock(folder));
  const read = () => readLogins(folder);
  const update: LockedLogins['update'] = async (change) => await writeLogins(folder, change(await read()));
  await update((logins) => logins);
  undo.move();
  return { read, update, [Symbol.dispose]: () => lock[Symbol.dispose]() };
}

/** Changes the logins as they are stored now: another command may have stored one since this one read them. */
export async function updateLogins(folder: string | undefined, change: (logins: Logins) => Logins): Promise<void> {
  using locked = await lockLogins(folder);
  await locked.update(change);
}

/** Throws unless the logins can be read and written. */
export async function checkLogins(folder: string | undefined): Promise<void> {
  using _ = await lockLogins(folder);
}

async function waitForLock(folder: string): Promise<Disposable> {
  const path = join(folder, LOCK_FILE);
  const endMs = performance.now() + LONGEST_WAIT_MS;
  for (;;) {
    const lock = await tryLock(folder, path);
    if (lock !== undefined) return lock;
    if (performance.now() >= endMs)
      throw new Failure('unavailable', `Cannot keep the login: another trivet holds "${path}"`);
    await sleep(POLL_MS);
  }
}

async function tryLock(folder: string, path: string): Promise<Disposable | undefined> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return tryLockFile(path);
  } catch (error) {
    throw refuseKeeping(folder, error);
  }
}

function refuseKeeping(folder: string, error: unknown): Failure {
  return new Failure('unavailable', `Cannot keep the login in "${folder}": ${describeError(error)}`);
}

/** Writes atomically: a killed command leaves the previous file. */
async function writeLogins(folder: string, logins: Logins): Promise<void> {
  const path = join(folder, FILE);
  const draft = `${path}.${process.pid}`;
  try {
    await writeFile(draft, `${JSON.stringify(logins, null, 2)}\n`, { mode: 0o600 });
    await chmod(draft, 0o600);
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined);
    throw refuseKeeping(folder, error);
  }
}

export function withLogin(logins: Logins, url: string, login: Login): Logins {
  return { preferred: url, hosts: { ...logins.hosts, [url]: login } };
}

/** Stores the successor of a login. The person may have signed out meanwhile, or signed in again: then that stays. */
export function withRefreshedLogin(
  logins: Logins,
  url: string,
  { before, after }: { before: Login; after: Login },
): Logins {
  if (logins.hosts[url]?.refreshToken !== before.refreshToken) return logins;
  return { ...withLogin(logins, url, after), preferred: logins.preferred };
}

/** Forgets a login. If it was the preferred one, commands work on the store again. */
export function withoutLogin({ preferred, hosts }: Logins, url: string): Logins {
  const { [url]: _, ...others } = hosts;
  return { preferred: preferred === url ? undefined : preferred, hosts: others };
}
