/**
 * A new secret on its way from the form that made it to the page that shows it: over a redirect, so that a reload makes no
 * second one. It waits sealed in a ticket for its session and its page, and is gone once it was shown.
 */
import { findTicket, issueTicket, takeTicket } from '../accounts/ticket-store.ts';
import type { Console, Visit } from './console.ts';

/** The browser follows the redirect at once. */
const LIFETIME_MS = 5 * 60_000;

interface Waiting {
  readonly sessionId: string;
  readonly path: string;
  readonly texts: readonly string[];
}

export interface ShownOnce {
  /** The secrets that the redirect carried; empty without a redirect. */
  readonly texts: readonly string[];
  /** The page was reloaded. */
  readonly isSpent: boolean;
}

/** 303 to the page at `path`, which takes the texts with `takeOnce`. */
export async function redirectWithSecret(
  kit: Console['kit'],
  { c, session }: Visit,
  { path, texts, done }: Pick<Waiting, 'path' | 'texts'> & { readonly done?: string },
): Promise<Response> {
  const content: Waiting = { sessionId: session.id, path, texts };
  const ticket = await issueTicket(kit, 'shown-once', { content, lifetimeMs: LIFETIME_MS });
  const query = new URLSearchParams({ ...(done === undefined ? {} : { done }), once: ticket });
  return c.redirect(`${path}?${query.toString()}`, 303);
}

export async function takeOnce(kit: Console['kit'], { c, session }: Visit): Promise<ShownOnce> {
  const ticket = c.req.query('once');
  if (ticket === undefined) return { texts: [], isSpent: false };
  const waiting = await findTicket<Waiting>(kit, 'shown-once', ticket);
  if (waiting?.sessionId !== session.id || waiting.path !== c.req.path) return { texts: [], isSpent: true };
  const taken = await takeTicket<Waiting>(kit, 'shown-once', ticket);
  return { texts: taken?.texts ?? [], isSpent: taken === undefined };
}
