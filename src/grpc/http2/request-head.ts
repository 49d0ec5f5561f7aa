/** Reads the headers of a request, and decides whether they are malformed (RFC 9113 §8.1.1, §8.2, §8.3). */
import type { Field } from '../hpack/fields.ts';

/** What a head is judged by, and what calls read. All other fields are checked and let go: a call keeps its headers as long as it waits. */
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
  /** Only the first of several fields with one name; undefined when the fields are larger than our settings allow. */
  readonly headers: Headers | undefined;
  /** Bytes of the content; undefined without `content-length`. */
  readonly contentLength: number | undefined;
  readonly isMalformed: boolean;
}

const TOO_LARGE: RequestHead = { headers: undefined, contentLength: undefined, isMalformed: false };
const METHOD = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** RFC 3986 §3.1. */
const SCHEME = /^[a-z][a-z0-9+\-.]*$/i;
/** Absolute, without space and fragment. Bytes beyond ASCII are let through, as most servers do. */
const PATH = /^\/[!"$-~\x80-\xff]*$/;
/** RFC 9113 §8.3.1: user information must not be there. */
const FORBIDDEN_IN_AUTHORITY = /[@/?#\s]/;
const CONTENT_LENGTH = /^\d{1,15}$/;
const DEFAULT_PORTS: Readonly<Record<'http' | 'https', string>> = { http: ':80', https: ':443' };

/** Reads heads; that of the last block again when it comes again, as most calls of one client have the same. */
export class RequestHeadReader {
  #lastFields: readonly Field[] | undefined;
  #lastHead: RequestHead | undefined;

  /** `mayComeAgain` tells whether a later block can have the same array of fields. Others are not kept: they may be long. */
  read(fields: readonly Field[] | undefined, mayComeAgain: boolean): RequestHead {
    if (fields === undefined) return TOO_LARGE;
    if (this.#lastHead !== undefined && fields === this.#lastFields) return this.#lastHead;
    const head = readRequestHead(fields);
    this.#lastFields = mayComeAgain ? fields : undefined;
    this.#lastHead = mayComeAgain ? head : undefined;
    return head;
  }
}

/** The bytes of the values. */
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

/** §8.1, §8.3: trailers have no pseudo-header fields. Undefined are those that are too large. */
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
