/**
 * Marks every authorization request that is sent to the sign-in page, so that it asks for a new sign-in once. Without the mark,
 * one with `prompt=login` would send its person to sign in for ever. The mark has the time at which the request was sent there.
 * It is good for this very request, in the browser that was sent, once, and for an hour: the mark of another browser, or an
 * older one, skips no sign-in.
 */
import { createHash } from 'node:crypto';
import type { Context } from 'hono';
import type { HttpEnv } from '../../http/context.ts';
import { formToken } from './cookies.ts';
import type { SignInContext } from './sign-in-context.ts';

type MarkDependencies = Pick<SignInContext, 'cipher' | 'world' | 'cookies'>;

/** The cookie that binds marks to the browser. */
const MARK_COOKIE = 'again';
const LIFETIME_SECONDS = 3600;

/** `request`: all of the request, spelt the same each time. */
export function markRequest(
  { cipher, world, cookies }: MarkDependencies,
  c: Context<HttpEnv>,
  request: string,
): string {
  const browser = cookies.read(c, MARK_COOKIE) ?? Buffer.from(world.randomBytes(24)).toString('base64url');
  cookies.write(c, MARK_COOKIE, { value: browser, maxAgeSeconds: LIFETIME_SECONDS });
  return Buffer.from(cipher.encrypt(String(world.nowMs()), markAssociatedData(request, browser))).toString('base64url');
}

/** Reads when the person was sent to sign in; undefined unless the mark is for this request and browser, and recent. */
export function readMark(
  { cipher, world, cookies }: MarkDependencies,
  c: Context<HttpEnv>,
  { request, mark }: { readonly request: string; readonly mark: string | undefined },
): number | undefined {
  const browser = cookies.read(c, MARK_COOKIE);
  if (mark === undefined || browser === undefined) return undefined;
  try {
    const markedAtMs = Number(
      cipher.decrypt(Buffer.from(mark, 'base64url'), markAssociatedData(request, browser)).toString(),
    );
    return Math.abs(world.nowMs() - markedAtMs) <= LIFETIME_SECONDS * 1000 ? markedAtMs : undefined;
  } catch {
    return undefined;
  }
}

/** The person has signed in: the mark is spent. */
export function spendMark({ cookies }: MarkDependencies, c: Context<HttpEnv>): void {
  cookies.drop(c, MARK_COOKIE);
}

function markAssociatedData(request: string, browser: string): string {
  const digest = createHash('sha256').update(request).digest('base64url');
  return `authorize-again:${digest}:${formToken(browser)}`;
}
