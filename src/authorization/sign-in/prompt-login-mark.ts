/**
 * Marks every authorization request that is sent to the sign-in page, so that it asks for a new sign-in only once. Without the
 * mark, a request with `prompt=login` would ask its person to sign in forever. The mark has the time at which the request was
 * sent there, and the session that was not enough. It is valid only for the same request in the same browser, until the client
 * has its answer, and for an hour at most.
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

/** Returns the mark and sets its cookie. `request`: the whole request, which must be formatted in the same way each time. */
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
 * Whether the person has signed in since the request was marked, in this browser and within an hour. The session must be another
 * one than the marked one. Its sign-in must be recent too: at a provider, it may have been long before. `MAX_SKEW_MS` allows for
 * the clocks of other machines and of the provider.
 */
export function hasSignedInSince(
  dependencies: MarkDependencies,
  c: Context<HttpEnv>,
  { session, ...marked }: MarkedRequest,
): boolean {
  const mark = readMark(dependencies, c, marked);
  return mark !== undefined && session.id !== mark.sessionId && session.authTimeMs >= mark.atMs - MAX_SKEW_MS;
}

/** Returns undefined unless the mark is for this request and this browser, and at most an hour old. */
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

/** Ends the mark when the client gets its answer: the same request then needs a new sign-in. Until then, its page can be reloaded. */
export function spendMark({ cookies }: MarkDependencies, c: Context<HttpEnv>): void {
  if (cookies.read(c, MARK_COOKIE) !== undefined) cookies.drop(c, MARK_COOKIE);
}

function markAssociatedData(request: string, browser: string): string {
  const digest = createHash('sha256').update(request).digest('base64url');
  return `authorize-again:${digest}:${formToken(browser)}`;
}
