/**
 * Recognizes browsers in which people signed in before, so that a stranger's guesses do not lock the owner out. The encrypted
 * cookie names the accounts, but signs no one in: a browser with it still needs the password, and only does not wait for the
 * failures of strangers (sign-in-throttle.ts).
 */
import type { Context } from 'hono';
import type { SecretCipher } from '../../encryption/secret-cipher.ts';
import type { HttpEnv } from '../../http/context.ts';
import type { World } from '../../world.ts';
import { loginKey } from '../accounts/login.ts';
import type { Cookies } from './cookies.ts';

interface KnownDevice {
  readonly id: string;
  /** Login keys, most recent first; at most `MAX_LOGINS`. */
  readonly logins: readonly string[];
  readonly keptAtMs: number;
}

interface DeviceDependencies {
  readonly cipher: SecretCipher;
  readonly world: World;
  readonly cookies: Cookies;
}

const ASSOCIATED_DATA = 'known device';
/** 400 days, the longest lifetime of a cookie in browsers. */
const LIFETIME_SECONDS = 400 * 86_400;
const MAX_LOGINS = 5;

/** Returns the id of this browser if this account has signed in here before. */
export function findDeviceId(dependencies: DeviceDependencies, c: Context<HttpEnv>, login: string): string | undefined {
  const device = readDevice(dependencies, c);
  return device?.logins.includes(loginKey(login)) ? device.id : undefined;
}

export function rememberDevice(dependencies: DeviceDependencies, c: Context<HttpEnv>, login: string): void {
  const { cipher, world, cookies } = dependencies;
  const known = readDevice(dependencies, c);
  const key = loginKey(login);
  const logins = [key, ...(known?.logins ?? []).filter((other) => other !== key)].slice(0, MAX_LOGINS);
  const device: KnownDevice = { id: known?.id ?? world.uuid(), logins, keptAtMs: world.nowMs() };
  const value = Buffer.from(cipher.encrypt(JSON.stringify(device), ASSOCIATED_DATA)).toString('base64url');
  cookies.write(c, 'device', { value, maxAgeSeconds: LIFETIME_SECONDS });
}

function readDevice({ cipher, world, cookies }: DeviceDependencies, c: Context<HttpEnv>): KnownDevice | undefined {
  const ciphertext = cookies.read(c, 'device');
  if (ciphertext === undefined) return undefined;
  try {
    const device = JSON.parse(
      cipher.decrypt(Buffer.from(ciphertext, 'base64url'), ASSOCIATED_DATA).toString(),
    ) as KnownDevice;
    return world.nowMs() - device.keptAtMs < LIFETIME_SECONDS * 1000 ? device : undefined;
  } catch {
    return undefined;
  }
}
