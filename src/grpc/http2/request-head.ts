/** Reads the headers of a request, and decides whether they are malformed (RFC 9113 §8.1.1, §8.2, §8.3). */
import type { Field } from '../hpack/fields.ts';

/** The fields that the checks and the calls read. All others are checked and dropped: a waiting call keeps its headers. */
const NAMES = [
  ':method',
  ':scheme',
  ':authority',
  ':path',
  'host',
  'content-length',
  'content-type',
  'grpc-timeout',
  'grpc-encoding',
  'authorization',
  'traceparent',
  'forwarded',
  'x-forwarded-for',
  'x-real-ip',
  'via',
] as const;
const KEPT_NAMES: ReadonlySet<string> = new Set(NAMES);

export type HeaderName = (typeof NAMES)[number];
export type Headers = Pick<ReadonlyMap<HeaderName, string>, 'get' | 'has' | 'values'>;

export interface RequestHead {
  /** The first of several fields with one name; undefined when the fields are larger than our settings allow. */
  readonly headers: Headers | undefined;
  /** Bytes of the content; undefined without `content-length`. */
  readonly contentLength: number | undefined;
  readonly isMalformed: boolean;
}

const TOO_LARGE: RequestHead = { headers: undefined, contentLength: undefined, isMalformed: false };
const METHOD = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** RFC 3986 §3.1. */
const SCHEME = /^[a-z][a-z0-9+\-.]*$/i;
/** An absolute path without spaces or a fragment. Bytes beyond ASCII are accepted, as most servers do. */
const PATH = /^\/[!"$-~\x80-\xff]*$/;
/** RFC 9113 §8.3.1: an authority must have no user information. */
const FORBIDDEN_IN_AUTHORITY = /[@/?#\s]/;
const CONTENT_LENGTH = /^\d{1,15}$/;
const DEFAULT_PORTS: Readonly<Record<'http' | 'https', string>> = { http: ':80', https: ':443' };

/** Reads heads, and returns the last head again for a repeated block: most calls of one client have the same headers. */
export class RequestHeadReader {
  #lastFields: readonly Field[] | undefined;
  #lastHead: RequestHead | undefined;

  /** `mayComeAgain`: a later block can have the same array of fields. Other heads are not cached: they may be long. */
  read(fields: readonly Field[] | undefined, mayComeAgain: boolean): RequestHead {
    if (fields === undefined) return TOO_LARGE;
    if (this.#lastHead !== undefined && fields === this.#lastFields) return this.#lastHead;
    const head = readRequestHead(fields);
    this.#lastFields = mayComeAgain ? fields : undefined;
    this.#lastHead = mayComeAgain ? head : undefined;
    return head;
  }
}

/** The total length of the values. */
export function countHeaderBytes(headers: Headers): number {
  let bytes = 0;
  for (const value of headers.values()) bytes += value.length;
  return bytes;
}

function readRequestHead(fields: readonly Field[]): RequestHead {
  const headers = new Map<string, string>();
  let isMalformed = false;
  let hasRegular = false;
  for (const { name, value, kind } of fields) {
    const isRepeated = headers.has(name);
    if (kind === 'regular') hasRegular = true;
    else if (kind === 'malformed' || hasRegular || isRepeated) isMalformed = true;
    if (!isRepeated) {
      if (KEPT_NAMES.has(name)) headers.set(name, value);
    } else if (name === 'content-length' && headers.get(name) !== value) isMalformed = true;
  }
  const length = headers.get('content-length');
  if (length !== undefined && !CONTENT_LENGTH.test(length)) isMalformed = true;
  return {
    headers,
    contentLength: length === undefined ? undefined : Number(length),
    isMalformed: isMalformed || !hasTarget(headers) || !isAuthorityGood(headers),
  };
}

/** Checks trailers, which have no pseudo-header fields (§8.1, §8.3). `fields` is undefined if they are too large. */
export function areTrailersMalformed(fields: readonly Field[] | undefined): boolean {
  return fields === undefined || fields.some(({ kind }) => kind !== 'regular');
}

/** §8.3.1, and §8.5 for CONNECT. */
function hasTarget(headers: Headers): boolean {
  const method = headers.get(':method');
  const scheme = headers.get(':scheme');
  const path = headers.get(':path');
  if (method === undefined || !METHOD.test(method)) return false;
  if (method === 'CONNECT') return scheme === undefined && path === undefined && headers.has(':authority');
  if (scheme === undefined || !SCHEME.test(scheme) || path === undefined) return false;
  return PATH.test(path) || (path === '*' && method === 'OPTIONS');
}

function isAuthorityGood(headers: Headers): boolean {
  const authority = headers.get(':authority');
  if (authority === undefined) return true;
  if (FORBIDDEN_IN_AUTHORITY.test(authority)) return false;
  const host = headers.get('host');
  if (host === undefined || host === authority) return true;
  const scheme = headers.get(':scheme')?.toLowerCase();
  return normalizeAuthority(host, scheme) === normalizeAuthority(authority, scheme);
}

/** RFC 3986 §6.2.3. */
function normalizeAuthority(authority: string, scheme: string | undefined): string {
  const lower = authority.toLowerCase();
  if (scheme !== 'http' && scheme !== 'https') return lower;
  const port = DEFAULT_PORTS[scheme];
  return lower.endsWith(port) ? lower.slice(0, -port.length) : lower;
}
