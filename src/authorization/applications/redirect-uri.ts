/** Decides which redirect URIs may be registered, and whether a requested one matches (RFC 9700 §2.1, RFC 8252 §7). */
import { Failure } from '../../errors.ts';

export interface RedirectUriPolicy {
  readonly isPublic: boolean;
}

const MAX_LENGTH = 2000;
const LOOPBACK_HOSTS = new Set(['127.0.0.1', '[::1]', 'localhost']);
/** RFC 8252 §7.1: a private scheme is a reversed domain name, so that no other application takes it by chance. */
const PRIVATE_SCHEME = /^[a-z][a-z0-9+-]*\.[a-z0-9+.-]+:$/;
/**
 * Splits a loopback URI into address (group 1), port (2) and path with query (3). Address and path are compared; any port
 * matches (RFC 8252 §7.3). User information does not match.
 */
const LOOPBACK_IP = /^http:\/\/(127\.0\.0\.1|\[::1\])(?::(\d{1,5}))?([/?][^#]*)?$/;

/** Throws unless an application may register this URI. */
export function checkRegistrableUri(uri: string, { isPublic }: RedirectUriPolicy): void {
  if (uri.length > MAX_LENGTH) throw refuse(uri, `have at most ${MAX_LENGTH} characters`);
  if (!/^[\x21-\x7e]+$/.test(uri) || /[\\*]/.test(uri))
    throw refuse(uri, 'be plain ASCII without spaces, "\\" and "*"');
  if (!URL.canParse(uri)) throw refuse(uri, 'be an absolute URI');
  const url = new URL(uri);
  if (uri.includes('#')) throw refuse(uri, 'have no fragment');
  if (url.username !== '' || url.password !== '') throw refuse(uri, 'have no user information');
  if (/(^|\/)\.\.?(\/|$)/.test(uri.split('?')[0] ?? '') || /%2e/i.test(uri))
    throw refuse(uri, 'have no "." or ".." segments');
  checkScheme(uri, url, isPublic);
  checkLowerCase(uri);
}

function checkScheme(uri: string, url: URL, isPublic: boolean): void {
  if (/^https?:$/.test(url.protocol)) checkAuthority(uri, url);
  if (url.protocol === 'https:') return;
  if (url.protocol === 'http:') {
    if (!LOOPBACK_HOSTS.has(url.hostname)) throw refuse(uri, 'use https, or http on a loopback address');
    return;
  }
  if (!isPublic) throw refuse(uri, 'use https: private schemes are for applications without a secret');
  if (!PRIVATE_SCHEME.test(url.protocol))
    throw refuse(uri, 'use a scheme that is a reversed domain name, like com.example.app');
}

/**
 * Throws unless the host is written as browsers read it. URL parsers accept `https:host/path`, `https:///host/path`, numbers for
 * IP addresses and escapes in hosts, but a person must see the host that the browser will open.
 */
function checkAuthority(uri: string, url: URL): void {
  const written = /^[^:]+:\/\/([^/?]*)/.exec(uri)?.[1]?.toLowerCase();
  const defaultPort = url.protocol === 'https:' ? ':443' : ':80';
  if (written !== url.host && written !== url.host + defaultPort)
    throw refuse(uri, `have the host as browsers read it, "//${url.host}", after its scheme`);
}

/**
 * Throws unless scheme and host are in lower case. In other cases they mean the same (RFC 3986 §6.2.2.1), but a requested URI is
 * compared exactly, and client libraries write both in lower case, so the URI would never match.
 */
function checkLowerCase(uri: string): void {
  const [origin = ''] = /^[^:]+:(\/\/[^/?]*)?/.exec(uri) ?? [];
  const lower = origin.toLowerCase() + uri.slice(origin.length);
  if (uri !== lower) throw refuse(uri, `have its scheme and host in lower case, as in "${lower.slice(0, 200)}"`);
}

function refuse(uri: string, rule: string): Failure {
  return new Failure('invalid', `Cannot register the redirect URI: it must ${rule}, got "${uri.slice(0, 200)}"`, {
    field: 'redirect_uri',
  });
}

/** Compares exact strings, except that any port of a loopback IP address matches (RFC 9700 §2.1). */
export function isRegisteredRedirectUri(uri: string, registered: readonly string[]): boolean {
  return registered.includes(uri) || registered.some((candidate) => isSameLoopback(uri, candidate));
}

function isSameLoopback(uri: string, registered: string): boolean {
  const [asked, known] = [LOOPBACK_IP.exec(uri), LOOPBACK_IP.exec(registered)];
  if (asked === null || known === null) return false;
  return asked[1] === known[1] && asked[3] === known[3] && Number(asked[2] ?? 80) <= 65_535;
}

/** Whether the URI has a private scheme. A redirect after a form cannot open it; a page with a link can. */
export function isPrivateScheme(uri: string): boolean {
  return !/^https?:/i.test(uri);
}

export function isLoopbackIp(uri: string): boolean {
  return LOOPBACK_IP.test(uri);
}

/** Adds parameters, which replace those of the same name. Keeps the rest of the URI's own query (RFC 6749 §4.1.2). */
export function addToQuery(uri: string, parameters: Readonly<Record<string, string | undefined>>): string {
  const [base = '', query = ''] = splitOnce(uri, '?');
  const added = Object.entries(parameters).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const names = new Set(added.map(([name]) => name));
  const kept = query.split('&').filter((pair) => pair !== '' && !names.has(readName(pair)));
  const pairs = [...kept, ...added.map(([name, value]) => `${name}=${encodeURIComponent(value)}`)];
  return `${base}?${pairs.join('&')}`;
}

function readName(pair: string): string {
  return new URLSearchParams(pair).keys().next().value ?? '';
}

function splitOnce(text: string, separator: string): string[] {
  const at = text.indexOf(separator);
  return at === -1 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}
