/** Checks time-based one-time passwords within a window (TOTP, RFC 6238), and makes recovery codes. */
import { Secret, TOTP } from 'otpauth';
import type { World } from '../../world.ts';

const PERIOD_SECONDS = 30;
/** How many time steps (of 30 s) before and after the present one are accepted: the clock of a phone may be wrong. */
const WINDOW = 1;
const RECOVERY_CODES = 10;
/** Crockford's base32 alphabet: no i, l, o, u. */
const RECOVERY_ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

/** 160 bits in base32 (RFC 4226 §4). */
export function createTotpSeed(world: World): string {
  const bytes = Uint8Array.from(world.randomBytes(20));
  return new Secret({ buffer: bytes.buffer }).base32;
}

/** Formats the URI that an authenticator app reads from the picture. */
export function formatTotpUri(seed: string, label: { readonly issuer: string; readonly login: string }): string {
  return new TOTP({ issuer: label.issuer, label: label.login, secret: seed, period: PERIOD_SECONDS }).toString();
}

/** Finds the time step of these digits, or undefined. A caller that accepts the digits must spend the step. */
export function findTimeStep(seed: string, digits: string, nowMs: number): number | undefined {
  const token = digits.replace(/\s/g, '');
  if (!/^\d{6}$/.test(token)) return undefined;
  const totp = new TOTP({ secret: seed, period: PERIOD_SECONDS });
  const delta = totp.validate({ token, timestamp: nowMs, window: WINDOW });
  return delta === null ? undefined : Math.floor(nowMs / 1000 / PERIOD_SECONDS) + delta;
}

/** Ten codes of 80 bits, in groups that can be read aloud. */
export function createRecoveryCodes(world: World): string[] {
  return Array.from({ length: RECOVERY_CODES }, () => {
    const letters = Array.from(world.randomBytes(16), (byte) => RECOVERY_ALPHABET[byte % 32]).join('');
    return letters.replace(/(.{4})(?=.)/g, '$1-');
  });
}
