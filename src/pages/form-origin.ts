/**
 * Finds where a form came from, and refuses one that another site sent (CSRF), by the `Origin` header. A browser always sends `Origin`
 * with a cross-site post; our own pages send it too, because their referrer policy is `same-origin`.
 */
import type { Context } from 'hono';
import { Failure } from '../errors.ts';
import type { HttpEnv } from '../http/context.ts';

/** Throws `forbidden` for a form posted from another site. `baseUrl`: the URL at which browsers reach the pages. */
export function checkOrigin(c: Context<HttpEnv>, baseUrl: string): void {
  if (isFromOtherSite(c, baseUrl))
    throw new Failure('forbidden', 'This form was sent from another site', { isOtherSite: true });
}

/** Whether `checkOrigin` threw this failure: a form from another site may also be refused for another reason. */
export function isOriginRefusal({ details }: Failure): boolean {
  return details.isOtherSite === true;
}

export function isFromOtherSite(c: Context<HttpEnv>, baseUrl: string): boolean {
  const origin = c.req.header('origin');
  const site = c.req.header('sec-fetch-site');
  if (origin === undefined) return site !== undefined && site !== 'same-origin' && site !== 'none';
  return !isOwnOrigin(origin, baseUrl, c.req.header('host'));
}

/** Accepts the configured host, and the one in the request's `Host` header, which a page cannot set in a browser. */
function isOwnOrigin(origin: string, baseUrl: string, host: string | undefined): boolean {
  const own = new URL(baseUrl);
  if (origin === own.origin) return true;
  if (!URL.canParse(origin) || host === undefined) return false;
  const { protocol, host: sentHost } = new URL(origin);
  // An attacker on the network path can change a page that is loaded over plain http.
  return sentHost === host && (own.protocol !== 'https:' || protocol === 'https:');
}

/**
 * Finds the page that the form was on: our pages send their address with it (`Referrer-Policy: same-origin`). Only the path is
 * used, so that it leads to a page of this service whatever `Referer` holds.
 */
export function findPathBack(c: Context<HttpEnv>): string {
  const referrer = c.req.header('referer') ?? '';
  if (!URL.canParse(referrer)) return '/';
  const { pathname, search } = new URL(referrer);
  // Two slashes would name another host, browsers read a backslash as a slash, and `javascript:` has no path.
  return /^\/(?![/\\])/.test(pathname) ? pathname + search : '/';
}
