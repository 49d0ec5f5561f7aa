/** Sends a page with its content security policy and other headers. */
import type { Context } from 'hono';
import type { HttpEnv } from '../http/context.ts';
import type { Html } from './layout.ts';

export interface PageOptions {
  readonly status?: 200 | 400 | 403 | 404 | 409 | 410 | 413 | 422 | 429 | 500 | 503 | undefined;
  /**
   * The redirects after a form of this page can end at a client. Chromium and WebKit apply `form-action` to each redirect,
   * those of the client included, and the service cannot know where a client redirects to. A source also cannot name an IPv6
   * address (CSP Level 3 §2.3.1). So such a page allows every web address; the redirect URI was checked to be one.
   */
  readonly leadsToClient?: boolean | undefined;
  /** Allows our own scripts, and their requests to this service. */
  readonly withScript?: boolean | undefined;
}

export function contentSecurityPolicy({ leadsToClient, withScript }: PageOptions): string {
  const script = withScript ? ["script-src 'self'", "connect-src 'self'"] : [];
  return [
    "default-src 'none'",
    "style-src 'self'",
    "img-src 'self' data:",
    ...script,
    "base-uri 'none'",
    "frame-ancestors 'none'",
    leadsToClient ? "form-action 'self' http: https:" : "form-action 'self'",
  ].join('; ');
}

export async function respondPage(c: Context<HttpEnv>, page: Html, options: PageOptions = {}): Promise<Response> {
  writeHeaders(c, options);
  return c.html(await page, options.status ?? 200);
}

/** Sends a public page: all responses share its bytes, so clients that do not read them cost little memory. */
export function respondSharedPage(
  c: Context<HttpEnv>,
  page: Uint8Array<ArrayBuffer>,
  options: PageOptions = {},
): Response {
  writeHeaders(c, options);
  return c.body(page, options.status ?? 200, { 'Content-Type': 'text/html; charset=UTF-8' });
}

function writeHeaders(c: Context<HttpEnv>, options: PageOptions): void {
  c.header('Content-Security-Policy', contentSecurityPolicy(options));
  // With `no-referrer`, browsers would send `Origin: null` with our own forms.
  c.header('Referrer-Policy', 'same-origin');
  c.header('X-Frame-Options', 'DENY');
  c.header('X-Content-Type-Options', 'nosniff');
  c.header('Cache-Control', 'no-store');
  c.header('Vary', 'Accept-Language, Cookie', { append: true });
}
