/** The frame that every signed-in page is built in: who it is, forms that are theirs, and answers in the console. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { HttpEnv } from '../http/context.ts';
import { type ConsolePage, renderConsolePage } from './layout.ts';
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
}

type Page = Omit<ConsolePage, 'visitor' | 'sections'>;

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

export interface Visits<V extends Visitor = Visitor> {
  /** A page. A person who is not signed in is sent to sign in, and returns. */
  readonly page: (path: string, handle: (visit: Visit<V>) => Promise<Response>) => void;
  /** A form's target; checked to come from a page of this session. */
  readonly form: (path: string, handle: (submission: Submission<V>) => Promise<Response>) => void;
}

export function createVisits<V extends Visitor>(routes: OpenAPIHono<HttpEnv>, gate: Gate<V>): Visits<V> {
  const openVisit = (c: Context<HttpEnv>, session: V): Visit<V> => {
    const sections = gate.listSections(session);
    return {
      c,
      session,
      sections,
      show: (page, options) =>
        respondPage(c, renderConsolePage({ ...page, visitor: session, sections }), {
          ...options,
          withScript: page.script !== undefined,
        }),
    };
  };
  return {
    page: (path, handle) =>
      routes.get(path, async (c) => {
        const session = await gate.currentVisitor(c);
        if (session !== undefined) return handle(openVisit(c, session));
        const { pathname, search } = new URL(c.req.url);
        return gate.askToSignIn(c, pathname + search);
      }),
    form: (path, handle) =>
      routes.post(path, async (c) => {
        const session = await gate.currentVisitor(c);
        if (session === undefined) return gate.askToSignIn(c, '/');
        const form = await readForm(c);
        gate.checkForm(c, form);
        return handle({ ...openVisit(c, session), form });
      }),
  };
}

/** `?done=saved` → the sentence for it; an unknown word says nothing. */
export function findDone(c: Context<HttpEnv>, sentences: Readonly<Record<string, string>>): string | undefined {
  const word = c.req.query('done');
  return word !== undefined && Object.hasOwn(sentences, word) ? sentences[word] : undefined;
}
