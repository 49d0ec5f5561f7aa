/** Checks addresses, address ranges and host name patterns in settings. */
import { isIP } from 'node:net';

/** `*` alone, `*.` and a name, or a name. */
export function isNamePattern(value: string): boolean {
  return /^(\*|(\*\.)?[a-z0-9_]([a-z0-9_-]*)(\.[a-z0-9_][a-z0-9_-]*)*)$/.test(value) && value !== 'localhost';
}

export function isAddressOrCidr(value: string): boolean {
  return isIP(value) !== 0 || isCidr(value);
}

export function isCidr(value: string): boolean {
  const [address = '', bits = ''] = value.split('/');
  const family = isIP(address);
  return family !== 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128);
}
