/** The frame that every signed-in page is built in: who it is, forms that are theirs, and answers in the console. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { raw } from 'hono/html';
import type { HttpEnv } from '../http/context.ts';
import { type ConsolePage, renderConsolePage } from './layout.ts';
import type { LiveStreams } from './live-streams.ts';
import type { NavigationSection } from './navigation.ts';
import { type PageOptions, respondPage } from './page-response.ts';
import { readForm } from './page-routes.ts';
import type { Visitor } from './visitor.ts';

/** Lets people in. The room that signs people in provides it; pages elsewhere receive it. */
export interface Gate<V extends Visitor = Visitor> {
  readonly currentVisitor: (c: Context<HttpEnv>) => Promise<V | undefined>;
  /** Throws `forbidden` unless the form came from a page of this session and of this site. */
  readonly checkForm: (c: Context<HttpEnv>, form: URLSearchParams) => void;
  /** To the sign-in page, which leads back to `returnTo`, a path of this service. */
  readonly askToSignIn: (c: Context<HttpEnv>, returnTo: string) => Response;
  /** What the navigation shows this visitor. */
  readonly listSections: (visitor: Visitor) => readonly NavigationSection[];
  /** What would protect the account better; undefined when nothing is missing. */
  readonly findAdvice: (visitor: Pick<Visitor, 'user'>) => Promise<Advice | undefined>;
  /** Keeps a text for this session and this path for a few minutes; returns the token that takes it once. */
  readonly keepOnce: (visitor: Pick<Visitor, 'id'>, path: string, text: string) => Promise<string>;
  /** Undefined for a token that was taken already, or of another session or path. */
  readonly takeOnce: (visitor: Pick<Visitor, 'id'>, path: string, token: string) => Promise<string | undefined>;
}

/** A next step, and where it is done. */
export interface Advice {
  readonly text: string;
  readonly path: string;
  readonly label: string;
}

interface Page extends Omit<ConsolePage, 'visitor' | 'sections'> {
  /** What a form shows when it is refused belongs to this address, with its query; by default to that of the form. */
  readonly at?: string | undefined;
}

/** One request of a signed-in person. */
export interface Visit<V extends Visitor = Visitor> {
  readonly c: Context<HttpEnv>;
  readonly session: V;
  readonly sections: readonly NavigationSection[];
  readonly show: (page: Page, options?: PageOptions) => Promise<Response>;
}

export interface Submission<V extends Visitor = Visitor> extends Visit<V> {
  readonly form: URLSearchParams;
}

type Handle<V extends Visitor> = (visit: Visit<V>) => Promise<Response>;

export interface Visits<V extends Visitor = Visitor> {
  /** A page. A person who is not signed in is sent to sign in, and returns. */
  readonly page: (path: string, handle: Handle<V>) => void;
  /** The same, and with a script the page follows what happens. */
  readonly livePage: (path: string, handle: Handle<V>) => void;
  /** A form's target; checked to come from a page of this session. */
  readonly form: (path: string, handle: (submission: Submission<V>) => Promise<Response>) => void;
}

/** Without `live`, a page that could be live is shown as it is. */
export function createVisits<V extends Visitor>(
  routes: OpenAPIHono<HttpEnv>,
  gate: Gate<V>,
  live?: Pick<LiveStreams, 'open'>,
): Visits<V> {
  const openVisit = (c: Context<HttpEnv>, session: V): Visit<V> => {
    const sections = gate.listSections(session);
    const show = (page: Page, options?: PageOptions) =>
      respondPage(c, renderConsolePage({ ...page, visitor: session, sections }), {
        ...options,
        withScript: true,
      });
    return { c, session, sections, show };
  };
  const addPage = (path: string, handle: Handle<V>, streams: typeof live) =>
    routes.get(path, async (c) => {
      const session = await gate.currentVisitor(c);
      const { pathname, search } = new URL(c.req.url);
      if (session === undefined) return gate.askToSignIn(c, pathname + search);
      if (streams !== undefined && c.req.header('accept') === 'text/event-stream')
        return streams.open(session.user.id, () => renderAgain(gate, c, { openVisit, handle }));
      const visit = openVisit(c, session);
      const show: Visit<V>['show'] = (page, options) => visit.show({ ...page, isLive: streams !== undefined }, options);
      return (await showRefused(gate, visit)) ?? (await handle({ ...visit, show }));
    });
  return {
    page: (path, handle) => addPage(path, handle, undefined),
    livePage: (path, handle) => addPage(path, handle, live),
    form: (path, handle) =>
      routes.post(path, async (c) => {
        const session = await gate.currentVisitor(c);
        if (session === undefined) return gate.askToSignIn(c, '/');
        const form = await readForm(c);
        gate.checkForm(c, form);
        const visit = openVisit(c, session);
        const show = (page: Page, options?: PageOptions) => redirectRefused(gate, visit, { page, options });
        return handle({ ...visit, show, form });
      }),
  };
}

const REFUSED = 'refused';

/** A page that a form would show, as it waits for the redirect. Its text carries what was typed, but no password. */
interface Kept {
  readonly title: string;
  readonly here: string;
  readonly content: string;
  readonly script: string | undefined;
  readonly styles: string | undefined;
  readonly status: PageOptions['status'];
}

/** No form answers with a page: a reload would send it again. What it has to say is shown once, behind a redirect. */
async function redirectRefused<V extends Visitor>(
  gate: Gate<V>,
  { c, session }: Visit<V>,
  { page, options }: { readonly page: Page; readonly options: PageOptions | undefined },
): Promise<Response> {
  const target = new URL(page.at ?? c.req.path, c.req.url);
  const kept: Kept = {
    title: page.title,
    here: page.here,
    content: String(await page.content),
    script: page.script?.path,
    styles: page.styles?.path,
    status: options?.status,
  };
  const token = await gate.keepOnce(session, target.pathname, JSON.stringify(kept));
  target.searchParams.set(REFUSED, token);
  return c.redirect(target.pathname + target.search, 303);
}

/** Undefined without such a page in the address; loaded again, it is the page without what was refused. */
async function showRefused<V extends Visitor>(
  gate: Gate<V>,
  { c, session, show }: Visit<V>,
): Promise<Response | undefined> {
  const token = c.req.query(REFUSED);
  if (token === undefined) return undefined;
  const text = await gate.takeOnce(session, c.req.path, token);
  if (text === undefined) {
    const { pathname, searchParams } = new URL(c.req.url);
    searchParams.delete(REFUSED);
    return c.redirect(searchParams.size === 0 ? pathname : `${pathname}?${searchParams.toString()}`, 303);
  }
  const { content, script, styles, status, ...page } = JSON.parse(text) as Kept;
  return await show({ ...page, content: raw(content), script: toAsset(script), styles: toAsset(styles) }, { status });
}

function toAsset(path: string | undefined): ConsolePage['script'] {
  return path === undefined ? undefined : { path };
}

/** The content of a page now; undefined when its reader is signed out, or it is no page any more. */
async function renderAgain<V extends Visitor>(
  gate: Gate<V>,
  c: Context<HttpEnv>,
  {
    openVisit,
    handle,
  }: { readonly openVisit: (c: Context<HttpEnv>, session: V) => Visit<V>; readonly handle: Handle<V> },
): Promise<string | undefined> {
  const session = await gate.currentVisitor(c);
  if (session === undefined) return undefined;
  let content: string | undefined;
  const show: Visit<V>['show'] = async (page) => {
    content = String(await page.content);
    return new Response();
  };
  await handle({ ...openVisit(c, session), show });
  return content;
}

/** `?done=saved` → the sentence for it; an unknown word says nothing. */
export function findDone(c: Context<HttpEnv>, sentences: Readonly<Record<string, string>>): string | undefined {
  const word = c.req.query('done');
  return word !== undefined && Object.hasOwn(sentences, word) ? sentences[word] : undefined;
}
