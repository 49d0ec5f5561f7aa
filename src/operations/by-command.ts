/**
 * Names who ran a command on the store, for the audit log. There is no option to name a person: the store could not check it,
 * and who may write the store may write anything into it. So the audit log records what the operating system says about the caller.
 */
import { readFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { readUserEnvironment } from '../config/config.ts';

/** The login user id that Linux gives a process without a login, as in a container or a service. */
const NO_LOGIN = '4294967295';
const { sudoUser } = readUserEnvironment();
const loginUser = readLoginUser();

/**
 * Details of an event of the audit log. Commands often run as the account of the service: `login_user` is the account that signed
 * in to the machine, and `sudo_user` is the account that sudo reports, which the person could change.
 */
export const BY_COMMAND: Readonly<Record<string, string>> = {
  by: 'command line',
  system_user: readSystemUser(),
  ...(loginUser === undefined ? {} : { login_user: loginUser }),
  ...(sudoUser === undefined ? {} : { sudo_user: sudoUser }),
  host: hostname(),
};

function readSystemUser(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run under a user id that has no account.
    return String(process.getuid?.());
  }
}

/** The kernel keeps the login user id across su and sudo. Undefined where it does not, or where no login is known. */
function readLoginUser(): string | undefined {
  const uid = readIfThere('/proc/self/loginuid')?.trim();
  if (uid === undefined || uid === '' || uid === NO_LOGIN) return undefined;
  const accounts = (readIfThere('/etc/passwd') ?? '').split('\n').map((line) => line.split(':'));
  return accounts.find(([, , id]) => id === uid)?.[0] ?? uid;
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
