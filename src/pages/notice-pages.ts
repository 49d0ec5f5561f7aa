/** Renders pages that stop or interrupt what a person is doing: errors, and redirects to another address. */
import { html } from 'hono/html';
import { type Html, renderFocusPage } from './layout.ts';
import type { FrameTexts } from './texts.ts';

export interface ErrorView {
  readonly title?: string | undefined;
  readonly message: string;
  /** Further facts for the application's developer. */
  readonly details?: string | undefined;
  readonly traceId?: string | undefined;
}

export function renderErrorPage(texts: FrameTexts, view: ErrorView): Html {
  const title = view.title ?? texts.error.title;
  const content = html`<div class="card stack">
<h1>${title}</h1>
${view.message.replace(/\.$/, '') === title ? '' : html`<p>${view.message}</p>`}
${view.details ? html`<p class="soft small">${view.details}</p>` : ''}
${view.traceId ? html`<p class="soft small">${texts.error.trace} <code>${view.traceId}</code></p>` : ''}
<p><a href="/">${texts.error.home}</a></p>
</div>`;
  return renderFocusPage(texts, { title, content });
}

/** Renders a page that redirects to an application only when the person agrees: its address may not be trustworthy. */
export function renderLeavePage(
  texts: FrameTexts,
  view: {
    readonly url: string;
    readonly target: string;
    readonly application: string;
  },
): Html {
  const t = texts.leave;
  const content = html`<div class="card stack">
<h1>${t.title}</h1>
<p>${t.lead(view.application, view.target)}</p>
<p><a class="button full" href="${view.url}" rel="noreferrer">${t.link(view.target)}</a></p>
<p><a href="/">${texts.error.home}</a></p>
</div>`;
  return renderFocusPage(texts, { title: t.title, content });
}

/**
 * Renders a page that redirects to `url` by itself and has a link to it: for private-use schemes (`cursor://…`), which browsers
 * refuse at the end of a form's redirects whatever `form-action` allows. `target` is the address that the person sees.
 */
export function renderGoOnPage(texts: FrameTexts, view: { readonly url: string; readonly target: string }): Html {
  const t = texts.goOn;
  const content = html`<div class="card stack">
<h1>${t.title}</h1>
<p>${t.lead(view.target)}</p>
<p><a class="button full" href="${view.url}">${t.link}</a></p>
</div>`;
  return renderFocusPage(texts, { title: t.title, content, refreshTo: view.url });
}
