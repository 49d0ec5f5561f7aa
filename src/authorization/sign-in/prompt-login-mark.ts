/**
 * Marks every authorization request that is sent to the sign-in page, so that it asks for a new sign-in once. Without the mark,
 * one with `prompt=login` would send its person to sign in for ever. The mark has the time at which the request was sent there,
 * and the session that was not enough. It is good for this very request, in the browser that was sent, until the client has
 * its answer, and for an hour at most: the mark of another browser, or an older one, skips no sign-in.
 */
import { createHash } from 'node:crypto';
import type { Context } from 'hono';
import type { HttpEnv } from '../../http/context.ts';
import { MAX_SKEW_MS } from '../../steady-clock.ts';
import type { StoredSession } from '../accounts/session-store.ts';
import { formToken } from './cookies.ts';
import type { SignInContext } from './sign-in-context.ts';

type MarkDependencies = Pick<SignInContext, 'cipher' | 'world' | 'cookies'>;

/** The cookie that binds marks to the browser. */
const MARK_COOKIE = 'again';
const LIFETIME_SECONDS = 3600;

interface Mark {
  readonly atMs: number;
  /** Undefined if the person was not signed in. */
  readonly sessionId: string | undefined;
}

/** `request`: all of the request, spelt the same each time. */
export function markRequest(
  { cipher, world, cookies }: MarkDependencies,
  c: Context<HttpEnv>,
  { request, sessionId }: { readonly request: string; readonly sessionId: string | undefined },
): string {
  const browser = cookies.read(c, MARK_COOKIE) ?? Buffer.from(world.randomBytes(24)).toString('base64url');
  cookies.write(c, MARK_COOKIE, { value: browser, maxAgeSeconds: LIFETIME_SECONDS });
  const content: Mark = { atMs: world.nowMs(), sessionId };
  return Buffer.from(cipher.encrypt(JSON.stringify(content), markAssociatedData(request, browser))).toString(
    'base64url',
  );
}

interface MarkedRequest {
  readonly request: string;
  readonly mark: string | undefined;
  readonly session: StoredSession;
}

/**
 * Whether the person has signed in since the request was marked, in this browser and within an hour. Any other session than the
 * one that was not enough is a new one. At a provider the person may have signed in long before; another machine's clock, or
 * that of the provider, may differ from ours.
 */
export function hasSignedInSince(
  dependencies: MarkDependencies,
  c: Context<HttpEnv>,
  { session, ...marked }: MarkedRequest,
): boolean {
  const mark = readMark(dependencies, c, marked);
  return mark !== undefined && session.id !== mark.sessionId && session.authTimeMs >= mark.atMs - MAX_SKEW_MS;
}

/** Undefined unless the mark is for this request and browser, and recent. */
function readMark(
  { cipher, world, cookies }: MarkDependencies,
  c: Context<HttpEnv>,
  { request, mark }: Omit<MarkedRequest, 'session'>,
): Mark | undefined {
  const browser = cookies.read(c, MARK_COOKIE);
  if (mark === undefined || browser === undefined) return undefined;
  try {
    const text = cipher.decrypt(Buffer.from(mark, 'base64url'), markAssociatedData(request, browser)).toString();
    const content = JSON.parse(text) as Mark;
    return Math.abs(world.nowMs() - content.atMs) <= LIFETIME_SECONDS * 1000 ? content : undefined;
  } catch {
    return undefined;
  }
}

/** The client has its answer: the same request asks for a sign-in again. Until then, its page can be reloaded. */
export function spendMark({ cookies }: MarkDependencies, c: Context<HttpEnv>): void {
  if (cookies.read(c, MARK_COOKIE) !== undefined) cookies.drop(c, MARK_COOKIE);
}

function markAssociatedData(request: string, browser: string): string {
  const digest = createHash('sha256').update(request).digest('base64url');
  return `authorize-again:${digest}:${formToken(browser)}`;
}
