/** The frame that every signed-in page is built in: who it is, forms that are theirs, and answers in the console. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { HttpEnv } from '../../http/context.ts';
import type { Vault } from '../../vault/vault.ts';
import { createFlow, formatFlow } from '../sign-in/flow.ts';
import { readForm } from '../sign-in/page-routes.ts';
import type { Session, SignInKit } from '../sign-in/sign-in-kit.ts';
import { type ConsolePage, renderConsolePage } from './layout.ts';
import { type PageOptions, respondPage } from './page-response.ts';

type Page = Omit<ConsolePage, 'user' | 'csrfToken'>;

/** One request of somebody who is signed in. */
export interface Visit {
  readonly c: Context<HttpEnv>;
  readonly session: Session;
  readonly show: (page: Page, options?: PageOptions) => Promise<Response>;
}

export interface Submission extends Visit {
  readonly form: URLSearchParams;
}

export interface Console {
  readonly kit: SignInKit;
  /** A page; whoever is not signed in is asked to, and comes back. */
  readonly page: (path: string, handle: (visit: Visit) => Promise<Response>) => void;
  /** A form's target; checked to come from a page of this session. */
  readonly form: (path: string, handle: (submission: Submission) => Promise<Response>) => void;
}

export function createConsole(routes: OpenAPIHono<HttpEnv>, kit: SignInKit): Console {
  const openVisit = (c: Context<HttpEnv>, session: Session): Visit => ({
    c,
    session,
    show: (page, options) => {
      const { user, csrfToken } = session;
      return respondPage(c, renderConsolePage({ ...page, user, csrfToken }), {
        ...options,
        withScript: page.script !== undefined,
      });
    },
  });
  return {
    kit,
    page: (path, handle) =>
      routes.get(path, async (c) => {
        const session = await kit.currentSession(c);
        if (session !== undefined) return handle(openVisit(c, session));
        const { pathname, search } = new URL(c.req.url);
        return askToSignIn(c, kit.vault, { returnTo: pathname + search });
      }),
    form: (path, handle) =>
      routes.post(path, async (c) => {
        const session = await kit.currentSession(c);
        if (session === undefined) return askToSignIn(c, kit.vault, { returnTo: '/' });
        const form = await readForm(c);
        kit.checkForm(c, form);
        return handle({ ...openVisit(c, session), form });
      }),
  };
}

function askToSignIn(
  c: Context<HttpEnv>,
  vault: Vault,
  { returnTo, loginHint }: { readonly returnTo: string; readonly loginHint?: string },
): Response {
  return c.redirect(`/sign-in${formatFlow(createFlow(vault, returnTo), { login_hint: loginHint })}`, 303);
}

const FRESH_MS = 30 * 60_000;

/**
 * Adding a way to sign in is for somebody who signed in within the last half hour: an abandoned browser must not be
 * enough. Answers with the way to the sign-in page, or undefined to go on.
 */
export function askToSignInAgain({ c, session }: Visit, kit: SignInKit, returnTo: string): Response | undefined {
  if (isFresh(session, kit)) return undefined;
  return askToSignIn(c, kit.vault, { returnTo, loginHint: session.user.login });
}

/** `?done=saved` → the sentence for it; an unknown word says nothing. */
export function findDone(c: Context<HttpEnv>, sentences: Readonly<Record<string, string>>): string | undefined {
  const word = c.req.query('done');
  return word !== undefined && Object.hasOwn(sentences, word) ? sentences[word] : undefined;
}

export function isFresh(session: Session, { world }: SignInKit): boolean {
  return world.nowMs() - session.authTimeMs < FRESH_MS;
}
