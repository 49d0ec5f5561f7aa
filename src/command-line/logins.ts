/**
 * Stores the logins of `trivet login`, one for each service, in a file that only its person can read. As `gh` does, the file is
 * in the person's configuration folder (`$XDG_CONFIG_HOME/trivet/hosts.json`).
 */
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describeError, Failure } from '../errors.ts';

export interface Login {
  readonly token: string;
  /** Absent for a token that was given on standard input. */
  readonly refreshToken?: string | undefined;
  readonly expiresAtMs?: number | undefined;
  readonly scope?: string | undefined;
  /** Undefined when the token may not read it. */
  readonly user?: string | undefined;
}

export interface Logins {
  /** The service that commands speak to unless another is named: the one of the last login. */
  readonly preferred?: string | undefined;
  readonly hosts: Readonly<Record<string, Login>>;
}

const FILE = 'hosts.json';

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

/** Changes the logins as they are stored now: another command may have stored one since this one read them. */
export async function updateLogins(folder: string | undefined, change: (logins: Logins) => Logins): Promise<void> {
  await writeLogins(folder, change(await readLogins(folder)));
}

/** Whole or not at all: a command that is killed leaves the file of before. */
async function writeLogins(folder: string | undefined, logins: Logins): Promise<void> {
  if (folder === undefined)
    throw new Failure('invalid', 'Cannot keep the login: neither XDG_CONFIG_HOME nor HOME is set');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, FILE);
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, `${JSON.stringify(logins, null, 2)}\n`, { mode: 0o600 });
  await chmod(draft, 0o600);
  await rename(draft, path);
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
