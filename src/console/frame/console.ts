/** Frames each page of the console. Which sections a person sees is decided in `area.ts` and `session-guard.ts`. */
import { html } from 'hono/html';
import { isFailure } from '../../errors.ts';
import { loadAsset } from '../../pages/assets.ts';
import type { Mistake } from '../../pages/elements.ts';
import type { Html } from '../../pages/layout.ts';
import { toMistake } from '../../pages/page-routes.ts';
import type { PageRequest } from '../../pages/signed-in-pages.ts';
import type { ConsoleTexts } from '../texts/texts.ts';

export type { PageRequest, SignedInPages, Submission } from '../../pages/signed-in-pages.ts';

export const consoleStyles = loadAsset(new URL('console.css', import.meta.url));

/** A signed-in person, as the functions of the other areas take it. */
export interface Caller {
  readonly userId: string;
  readonly login: string;
  readonly isAdmin: boolean;
  /** The address of the person's browser, for the audit log. */
  readonly address: string;
}

export interface ConsoleView {
  readonly title: string;
  /** The entry of the navigation that the page belongs to. */
  readonly here: string;
  /** The address of this page, if a form with another address may show it. */
  readonly at?: string | undefined;
  readonly content: Html;
  readonly mistake?: Mistake | undefined;
}

/** A refused form is shown again with 422, like those of the account pages. */
export function showView({ show }: PageRequest, { mistake, ...view }: ConsoleView): Promise<Response> {
  return show({ ...view, styles: consoleStyles }, { status: mistake === undefined ? 200 : 422 });
}

export function callerOf({ c, session: { user } }: PageRequest): Caller {
  return { userId: user.id, login: user.login, isAdmin: user.isAdmin, address: c.get('clientAddress') ?? '-' };
}

/** Returns the message to show for a failure that a person can correct or wait out. Rethrows any other error. */
export function readMistake(texts: ConsoleTexts, error: unknown): Mistake {
  if (isFailure(error) && error.code === 'too_many') return { message: texts.explain(`${error.message}.`) };
  return toMistake(texts, error);
}

/** Renders the mark that the script shows while the page updates itself. */
export function renderLiveMark(texts: ConsoleTexts): Html {
  return html`<span class="tag good beside" data-live-mark hidden>${texts.live}</span>`;
}

export interface Crumb {
  readonly path: string;
  readonly label: string;
}

export function renderCrumbs(texts: ConsoleTexts, crumbs: readonly Crumb[]): Html {
  return html`<nav class="crumbs small" aria-label="${texts.trail}"><ol>${crumbs.map(({ path, label }) => html`<li><a href="${path}">${label}</a></li>`)}</ol></nav>`;
}

/** Runs the work of a form. If it is refused, `again` shows the form with a message that the person can act on. */
export async function tryForm(
  texts: ConsoleTexts,
  work: () => Promise<Response>,
  again: (mistake: Mistake) => Promise<Response>,
): Promise<Response> {
  try {
    return await work();
  } catch (error) {
    return await again(readMistake(texts, error));
  }
}
