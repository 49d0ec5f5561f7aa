/** Builds the pages of signed-in people: finds the session, checks that each form comes from it, and answers in the console. */

import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { raw } from 'hono/html';
import { Failure, isFailure } from '../errors.ts';
import { FORM_MAX_BYTES } from '../http/body/limit-body.ts';
import type { HttpEnv } from '../http/context.ts';
import type { RespondPage } from '../http/mount.ts';
import type { Locale } from '../language/formats.ts';
import { type ConsolePage, renderConsolePage } from './layout.ts';
import { type LiveStreams, respondEnd } from './live-streams.ts';
import { preferTimeZone, readLocale } from './locale.ts';
import type { NavigationSection } from './navigation.ts';
import { type PageOptions, respondPage } from './page-response.ts';
import { readForm } from './page-routes.ts';
import type { SignedInUser } from './signed-in-user.ts';
import { readFrameTexts } from './texts.ts';

/** Finds the signed-in person of a request, or redirects to the sign-in page. authorization/ implements it; other modules receive it. */
export interface SessionGuard<V extends SignedInUser = SignedInUser> {
  readonly findSignedInUser: (c: Context<HttpEnv>, use?: SessionUse) => Promise<V | undefined>;
  /** Throws `forbidden` unless the form came from a page of this session and of this site. */
  readonly checkForm: (c: Context<HttpEnv>, form: URLSearchParams) => void;
  /** Redirects to the sign-in page, which leads back to `returnTo`, a path of this service. */
  readonly askToSignIn: (c: Context<HttpEnv>, returnTo: string) => Response;
  /** Answers a form whose session has ended: the sign-in page says that nothing was saved, and leads back to the form. */
  readonly refuseEndedSession: (c: Context<HttpEnv>) => Response;
  /** Answers a refusal: as a page, or for a form with a 303 redirect to that page. */
  readonly respondRefusal: RespondPage;
  /** Lists the sections that the navigation shows this person. */
  readonly listSections: (person: SignedInUser, locale: Locale) => readonly NavigationSection[];
  /** Finds advice on how to protect the account better; undefined when nothing is missing. */
  readonly findAdvice: (person: Pick<SignedInUser, 'user'>, locale: Locale) => Promise<Advice | undefined>;
  /** Keeps a page for this path for a few minutes, and drops the last one of this session; returns a token that takes the page once. */
  readonly keepPage: (person: Pick<SignedInUser, 'id'>, path: string, page: KeptPage) => Promise<string>;
  /** Returns undefined for a page that was taken or replaced, or of another session or path. */
  readonly takePage: (person: Pick<SignedInUser, 'id'>, path: string, token: string) => Promise<KeptPage | undefined>;
}

/** Whether the request shows that the person is active, which extends the session: the stream of a live page (`watched`) does not. */
export type SessionUse = 'used' | 'watched';

/** A next step, and a link to where it is done. */
export interface Advice {
  readonly text: string;
  readonly path: string;
  readonly label: string;
}

interface Page extends Omit<ConsolePage, 'person' | 'sections'> {
  /** The address, with its query, of the page that shows a refused form; the address of the form by default. */
  readonly at?: string | undefined;
}

/** One request of a signed-in person. */
export interface PageRequest<V extends SignedInUser = SignedInUser> {
  readonly c: Context<HttpEnv>;
  readonly session: V;
  readonly sections: readonly NavigationSection[];
  readonly show: (page: Page, options?: PageOptions) => Promise<Response>;
}

export interface Submission<V extends SignedInUser = SignedInUser> extends PageRequest<V> {
  readonly form: URLSearchParams;
}

type Handle<V extends SignedInUser> = (request: PageRequest<V>) => Promise<Response>;

export interface SignedInPages<V extends SignedInUser = SignedInUser> {
  /** Adds a page. A person who is not signed in is sent to sign in, and returns. */
  readonly page: (path: string, handle: Handle<V>) => void;
  /** Adds a page that also updates itself where scripts run. */
  readonly livePage: (path: string, handle: Handle<V>) => void;
  /** Adds the target of a form, which must come from a page of this session. */
  readonly form: AddForm<V>;
  /** Adds the target of a form whose fields may be longer than `FORM_MAX_BYTES` in total. */
  readonly longForm: AddForm<V>;
}

type AddForm<V extends SignedInUser> = (path: string, handle: (submission: Submission<V>) => Promise<Response>) => void;

/**
 * The longest form is that of an application. A browser encodes a character of its 20 redirect URIs in up to three bytes, and one of
 * its homepage and its description in up to nine.
 */
const LONG_FORM_MAX_BYTES = 160 * 1024;
/** The longest application has fewer. Bounds the page that is kept for a refused form, which needs up to six characters for each. */
const LONG_FORM_MAX_CHARACTERS = 48 * 1024;

/** Creates the pages of an area. Without `live`, a page that could be live is shown as it is. */
export function createSignedInPages<V extends SignedInUser>(
  routes: OpenAPIHono<HttpEnv>,
  guard: SessionGuard<V>,
  live?: Pick<LiveStreams, 'open'>,
): SignedInPages<V> {
  const openRequest = (c: Context<HttpEnv>, session: V): PageRequest<V> => {
    const texts = readFrameTexts(c);
    const sections = guard.listSections(session, readLocale(c));
    const show = (page: Page, options?: PageOptions) =>
      respondPage(c, renderConsolePage(texts, { ...page, person: session, sections }), {
        ...options,
        withScript: true,
      });
    return { c, session, sections, show };
  };
  const addPage = (path: string, handle: Handle<V>, streams: typeof live) =>
    routes.get(path, async (c) => {
      const isFollowing = streams !== undefined && c.req.header('accept') === 'text/event-stream';
      const session = await guard.findSignedInUser(c, isFollowing ? 'watched' : 'used');
      const { pathname, search } = new URL(c.req.url);
      if (session === undefined) return isFollowing ? respondEnd() : guard.askToSignIn(c, pathname + search);
      // HEAD would use up a secret that a page shows once, and would never end for the stream of a live page.
      if (c.req.method === 'HEAD') return c.notFound();
      if (isFollowing) return streams.open(session.user.id, () => renderAgain(guard, c, { openRequest, handle }));
      const request = openRequest(c, session);
      const show: PageRequest<V>['show'] = (page, options) =>
        request.show({ ...page, isLive: streams !== undefined }, options);
      return (await showRefused(guard, request)) ?? (await handle({ ...request, show }));
    });
  const createAddForm =
    (maxBytes: number): AddForm<V> =>
    (path, handle) =>
      routes.post(path, async (c) => {
        // The form of a person who is not signed in is not read.
        if ((await guard.findSignedInUser(c)) === undefined) return guard.refuseEndedSession(c);
        const form = await readForm(c, maxBytes);
        checkLength(form);
        // A form may arrive slowly: meanwhile the session may have ended, or the person may have lost a role.
        const session = await guard.findSignedInUser(c);
        if (session === undefined) return guard.refuseEndedSession(c);
        guard.checkForm(c, form);
        preferTimeZone(c, form);
        const request = openRequest(c, session);
        const show = (page: Page, options?: PageOptions) => redirectRefused(guard, request, { page, options });
        return handle({ ...request, show, form });
      });
  return {
    page: (path, handle) => addPage(path, handle, undefined),
    livePage: (path, handle) => addPage(path, handle, live),
    form: createAddForm(FORM_MAX_BYTES),
    longForm: createAddForm(LONG_FORM_MAX_BYTES),
  };
}

function checkLength(form: URLSearchParams): void {
  const length = form.values().reduce((sum, value) => sum + value.length, 0);
  if (length > LONG_FORM_MAX_CHARACTERS)
    throw new Failure('too_large', `Cannot read the form: it must have at most ${LONG_FORM_MAX_CHARACTERS} characters`);
}

const REFUSED = 'refused';

/** The page of a refused form, as it is kept until the redirect is followed. It holds what was typed, but no password. */
export interface KeptPage {
  readonly title: string;
  readonly here: string;
  readonly content: string;
  readonly script: string | undefined;
  readonly styles: string | undefined;
  readonly status: PageOptions['status'];
}

/** Redirects to the page of a refused form, which is shown once. As the answer to the form itself, a reload would send the form again. */
async function redirectRefused<V extends SignedInUser>(
  guard: SessionGuard<V>,
  { c, session }: PageRequest<V>,
  { page, options }: { readonly page: Page; readonly options: PageOptions | undefined },
): Promise<Response> {
  const target = new URL(page.at ?? c.req.path, c.req.url);
  const token = await guard.keepPage(session, target.pathname, {
    title: page.title,
    here: page.here,
    content: String(await page.content),
    script: page.script?.path,
    styles: page.styles?.path,
    status: options?.status,
  });
  target.searchParams.set(REFUSED, token);
  return c.redirect(target.pathname + target.search, 303);
}

/** Shows the page of a refused form. Undefined if the address has none; a reload shows the page without the refused values. */
async function showRefused<V extends SignedInUser>(
  guard: SessionGuard<V>,
  { c, session, show }: PageRequest<V>,
): Promise<Response | undefined> {
  const token = c.req.query(REFUSED);
  if (token === undefined) return undefined;
  const kept = await guard.takePage(session, c.req.path, token);
  if (kept === undefined) return c.redirect(removeParameters(new URL(c.req.url), [REFUSED]), 303);
  const { content, script, styles, status, ...page } = kept;
  return await show({ ...page, content: raw(content), script: toAsset(script), styles: toAsset(styles) }, { status });
}

function toAsset(path: string | undefined): ConsolePage['script'] {
  return path === undefined ? undefined : { path };
}

/** Renders the current content of a page; undefined when its reader is signed out or may no longer see it, or it is gone. */
async function renderAgain<V extends SignedInUser>(
  guard: SessionGuard<V>,
  c: Context<HttpEnv>,
  {
    openRequest,
    handle,
  }: { readonly openRequest: (c: Context<HttpEnv>, session: V) => PageRequest<V>; readonly handle: Handle<V> },
): Promise<string | undefined> {
  const session = await guard.findSignedInUser(c, 'watched');
  if (session === undefined) return undefined;
  let content: string | undefined;
  const show: PageRequest<V>['show'] = async (page) => {
    content = String(await page.content);
    return new Response();
  };
  try {
    await handle({ ...openRequest(c, session), show });
    return content;
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

/** Whether the object of the page was deleted, or its reader may no longer see it. */
function isGone(error: unknown): boolean {
  return isFailure(error) && (error.code === 'not_found' || error.code === 'forbidden');
}

/** Finds the sentence for `?done=saved`; undefined for an unknown word. */
export function findDone(c: Context<HttpEnv>, sentences: Readonly<Record<string, string>>): string | undefined {
  const word = c.req.query('done');
  return word !== undefined && Object.hasOwn(sentences, word) ? sentences[word] : undefined;
}

/** The parameters by which a page shows the outcome of a form. */
const OUTCOME_PARAMETERS = ['done', 'replayed', 'once', REFUSED];

/** The path of a page of this service, without the outcome of an earlier form. */
export function removeOutcome(path: string): string {
  return removeParameters(new URL(path, 'http://self.invalid'), OUTCOME_PARAMETERS);
}

function removeParameters({ pathname, searchParams }: URL, names: readonly string[]): string {
  for (const name of names) searchParams.delete(name);
  return searchParams.size === 0 ? pathname : `${pathname}?${searchParams.toString()}`;
}
