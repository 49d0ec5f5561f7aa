/**
 * Reads and sets the cookies of the pages, and checks the tokens of their forms (CSRF). Over https the names have the `__Host-`
 * prefix, so that no sibling host and no plain connection can set one. A service on plain http (loopback, a lab) uses the names
 * without it, since the prefix requires `Secure`.
 */
import { createHash } from 'node:crypto';
import type { Context } from 'hono';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import { Failure } from '../../errors.ts';
import type { HttpEnv } from '../../http/context.ts';
import { isSameText } from '../accounts/secret-text.ts';

/**
 * `form`: binds forms to this browser before the sign-in. `step`: a sign-in that waits for its second step. `upstream`: a sign-in
 * that waits for the provider. `again`: a person was sent to sign in again (prompt-login-mark.ts). `device`: people have signed in
 * in this browser before (known-device.ts); not a device of RFC 8628.
 */
export type CookieName = 'session' | 'form' | 'step' | 'upstream' | 'device' | 'again';

export interface Cookies {
  read(c: Context<HttpEnv>, name: CookieName): string | undefined;
  /** Without `maxAgeSeconds`, the cookie ends when the browser closes. */
  write(c: Context<HttpEnv>, name: CookieName, cookie: { value: string; maxAgeSeconds?: number }): void;
  drop(c: Context<HttpEnv>, name: CookieName): void;
}

export function createCookies(baseUrl: string): Cookies {
  const secure = new URL(baseUrl).protocol === 'https:';
  const fullName = (name: CookieName) => (secure ? `__Host-trivet_${name}` : `trivet_${name}`);
  const options = { path: '/', httpOnly: true, sameSite: 'Lax', secure } as const;
  return {
    read: (c, name) => getCookie(c, fullName(name)),
    write: (c, name, { value, maxAgeSeconds }) =>
      setCookie(c, fullName(name), value, {
        ...options,
        ...(maxAgeSeconds === undefined ? {} : { maxAge: maxAgeSeconds }),
      }),
    drop: (c, name) => void deleteCookie(c, fullName(name), options),
  };
}

/** The token that a form must send back, derived from a cookie that other sites cannot read. */
export function formToken(cookieValue: string): string {
  return createHash('sha256').update(`trivet form ${cookieValue}`).digest('base64url');
}

export interface FormFields {
  get(name: string): unknown;
}

/** Throws `forbidden` unless the form has the token of this cookie. */
export function checkFormToken(form: FormFields, cookieValue: string | undefined): void {
  const sent = form.get('csrf_token');
  const isRight = cookieValue !== undefined && typeof sent === 'string' && isSameText(sent, formToken(cookieValue));
  if (!isRight)
    throw new Failure(
      'forbidden',
      'This form is too old or was not made by this service: go back, reload and try again',
    );
}
