/**
 * Creates and checks secrets (`tvt_…`, 256 bits and a checksum), and hashes them for storage. The form is `tvt_<kind>_`, 43
 * letters and digits, and a checksum of 6: secret scanners find it by its prefix, a mistyped one is refused without a query,
 * and no kind passes for another. Only the SHA-256 is stored; 256 random bits need no slow hash.
 */
import { createHash, hash, timingSafeEqual } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { World } from '../../world.ts';

const LETTER_OF = {
  access: 'a',
  refresh: 'r',
  personal: 'p',
  code: 'c',
  device: 'd',
  client: 's',
} as const;

export type SecretKind = keyof typeof LETTER_OF;

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** The fewest characters of 62 that hold 256 bits: 62^43 > 2^256. */
const RANDOM_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
const PREFIX_LENGTH = 'tvt_x_'.length;
const SECRET_LENGTH = PREFIX_LENGTH + RANDOM_LENGTH + CHECKSUM_LENGTH;
/** The largest multiple of 62 that fits in a byte. Bytes from here on are dropped: they would make some characters likelier. */
const FAIR_BYTES = 248;

export function createSecret(kind: SecretKind, world: Pick<World, 'randomBytes'>): string {
  const body = `tvt_${LETTER_OF[kind]}_${createRandomText(RANDOM_LENGTH, world)}`;
  return body + computeChecksum(body);
}

/** Uniform letters and digits. */
export function createRandomText(length: number, world: Pick<World, 'randomBytes'>): string {
  let text = '';
  while (text.length < length) {
    for (const byte of world.randomBytes(length + 8)) {
      if (byte < FAIR_BYTES && text.length < length) text += ALPHABET[byte % ALPHABET.length];
    }
  }
  return text;
}

/** Whether the text has the form and checksum of a secret of this kind; if not, it is in no table. */
export function isSecretOf(kind: SecretKind, text: string): boolean {
  if (text.length !== SECRET_LENGTH || !text.startsWith(`tvt_${LETTER_OF[kind]}_`)) return false;
  const checksumAt = PREFIX_LENGTH + RANDOM_LENGTH;
  return computeChecksum(text.slice(0, checksumAt)) === text.slice(checksumAt);
}

function computeChecksum(body: string): string {
  let rest = crc32(body);
  let text = '';
  for (let digit = 0; digit < CHECKSUM_LENGTH; digit++) {
    text = ALPHABET[rest % ALPHABET.length] + text;
    rest = Math.floor(rest / ALPHABET.length);
  }
  return text;
}

export function hashSecret(secret: string): Uint8Array {
  return new Uint8Array(hash('sha256', secret, 'buffer'));
}

/** Compares in constant time, whatever the lengths. */
export function isSameText(a: string, b: string): boolean {
  return timingSafeEqual(createHash('sha256').update(a).digest(), createHash('sha256').update(b).digest());
}

export function isSameHash(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
