/** Checks the name and value of one header field (RFC 9113 §8.2). */

/** A header or trailer field, and the result of the checks of RFC 9113 that need no other field. */
export interface Field {
  readonly name: string;
  readonly value: string;
  readonly kind: 'pseudo' | 'regular' | 'malformed';
}

/** The pseudo-header fields of a request (RFC 9113 §8.3.1). Any other one makes a request malformed. */
const PSEUDO_NAMES: ReadonlySet<string> = new Set([':method', ':scheme', ':authority', ':path']);
/** Connection-specific fields, which belong to HTTP/1.1 (RFC 9113 §8.2.2). */
const CONNECTION_NAMES: ReadonlySet<string> = new Set([
  'connection',
  'proxy-connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
]);
/** RFC 9110 §5.6.2, without uppercase letters (RFC 9113 §8.2.1). */
const NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
/** RFC 9113 §8.2.1: space at either end, or NUL, LF or CR anywhere. */
const FORBIDDEN_IN_VALUE = /^[ \t]|[ \t]$|[\0\n\r]/;

/** Fields of the HPACK table are used by many requests, so a field is checked when it is created, not in each request. */
export function createField(name: string, value: string): Field {
  return { name, value, kind: kindOf(name, value) };
}

function kindOf(name: string, value: string): Field['kind'] {
  if (FORBIDDEN_IN_VALUE.test(value)) return 'malformed';
  if (PSEUDO_NAMES.has(name)) return 'pseudo';
  if (!NAME.test(name) || CONNECTION_NAMES.has(name)) return 'malformed';
  // §8.2.2: the only value that TE may have.
  if (name === 'te' && value.toLowerCase() !== 'trailers') return 'malformed';
  return 'regular';
}
