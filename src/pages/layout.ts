/**
 * Renders the frames of pages: one card for one decision, or the console with its navigation. No page needs a script,
 * except to add a passkey or to sign in with one.
 */
import { html } from 'hono/html';
import { LANGUAGE_NAMES, LANGUAGES } from '../language/language.ts';
import { type Asset, icon, pageScript, styleSheet } from './assets.ts';
import type { NavigationEntry, NavigationSection } from './navigation.ts';
import type { SignedInUser } from './signed-in-user.ts';
import type { FrameTexts } from './texts.ts';

/** The form that switches the language posts to this path. */
export const LANGUAGE_PATH = '/language';

export type Html = ReturnType<typeof html>;

/** A tripod. */
const MARK = html`<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2.3" stroke-linecap="round" aria-hidden="true"><path d="M3.5 7.5h17"/><path d="M7 7.5 4.5 19M12 7.5V19M17 7.5 19.5 19"/></svg>`;

/** The texts that the script writes on its buttons. */
function renderScriptWords(texts: FrameTexts): Html {
  return html` data-label-copy="${texts.script.copy}" data-label-copied="${texts.script.copied}" data-label-download="${texts.script.download}" data-label-show="${texts.script.show}" data-label-hide="${texts.script.hide}"`;
}

interface Frame {
  readonly title: string;
  readonly body: Html;
  /** A script that improves this page, which also works without it. */
  readonly script?: Pick<Asset, 'path'> | undefined;
  /** Whether the page loads page.js, the script of all pages: buttons that copy and show, and live pages. */
  readonly withPageScript?: boolean | undefined;
  /** The styles of this page, in addition to the style sheet of all pages. */
  readonly styles?: Pick<Asset, 'path'> | undefined;
  /** The page redirects to this address at once: a delay would be a time limit (WCAG 2.2.1). */
  readonly refreshTo?: string | undefined;
}

function renderDocument(texts: FrameTexts, { title, body, script, withPageScript, styles, refreshTo }: Frame): Html {
  return html`<!doctype html>
<html lang="${texts.language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · ${texts.product}</title>
<meta name="color-scheme" content="light dark">
<link rel="stylesheet" href="${styleSheet.path}">
${styles === undefined ? '' : html`<link rel="stylesheet" href="${styles.path}">`}
<link rel="icon" href="${icon.path}" type="image/svg+xml">
${refreshTo === undefined ? '' : html`<meta http-equiv="refresh" content="0;url=${refreshTo}">`}
${withPageScript ? html`<script type="module" src="${pageScript.path}"></script>` : ''}
${script === undefined ? '' : html`<script type="module" src="${script.path}"></script>`}
</head>
${body}
</html>`;
}

/** Renders the choice of the language as a form that leads back to its page, so that it works without a script. */
function renderLanguages(texts: FrameTexts): Html {
  const others = LANGUAGES.filter((language) => language !== texts.language);
  return html`<form method="post" action="${LANGUAGE_PATH}" aria-label="${texts.languages}">${others.map(
    (language) =>
      html`<button class="plain quiet" name="language" value="${language}" lang="${language}">${LANGUAGE_NAMES[language]}</button>`,
  )}</form>`;
}

export interface FocusPage extends Omit<Frame, 'body'> {
  readonly content: Html;
  readonly wide?: boolean | undefined;
}

export function renderFocusPage(texts: FrameTexts, page: FocusPage): Html {
  const body = html`<body class="focus${page.wide ? ' wide' : ''}"${renderScriptWords(texts)}>
<header><span class="brand">${MARK} ${texts.product}</span></header>
<main class="stack">${page.content}</main>
<footer class="foot">${texts.footer} ${renderLanguages(texts)}</footer>
</body>`;
  return renderDocument(texts, { ...page, body });
}

/** A page for people who are signed in and for those who are not. */
export function renderOpenPage(texts: FrameTexts, page: Omit<Frame, 'body'> & { readonly content: Html }): Html {
  const body = html`<body${renderScriptWords(texts)}>
<a class="skip" href="#content">${texts.skipToContent}</a>
<header class="top"><div class="row spread"><a class="brand" href="/">${MARK} ${texts.product}</a></div></header>
<main id="content" class="reference" tabindex="-1">${page.content}</main>
<footer class="foot">${renderLanguages(texts)}</footer>
</body>`;
  return renderDocument(texts, { ...page, body });
}

export interface ConsolePage extends Omit<Frame, 'body' | 'withPageScript'> {
  readonly person: SignedInUser;
  readonly sections: readonly NavigationSection[];
  /** The path of the entry in the navigation that this page belongs to. */
  readonly here: string;
  readonly content: Html;
  /** The script follows it with server-sent events. */
  readonly isLive?: boolean | undefined;
}

export function renderConsolePage(texts: FrameTexts, page: ConsolePage): Html {
  const body = html`<body${renderScriptWords(texts)}>
<a class="skip" href="#content">${texts.skipToContent}</a>
<header class="top"><div class="row spread">
<a class="brand" href="/">${MARK} ${texts.product}</a>
<form method="post" action="/sign-out" class="row">
<input type="hidden" name="csrf_token" value="${page.person.csrfToken}">
<span class="small soft"><span class="as">${texts.signedInAs}</span> <strong>${page.person.user.login}</strong></span>
<button class="plain quiet">${texts.signOut}</button>
</form>
</div></header>
<div class="shell">
<nav class="nav" aria-label="${texts.navigation}"><div class="side">${renderNavigation(texts, page)}</div>
<details class="menu"><summary>${texts.menu}<span class="soft">${nameHere(texts, page)}</span></summary>${renderNavigation(texts, page)}</details></nav>
<main id="content" class="stack" tabindex="-1"${page.isLive ? html` data-live data-zone="${texts.format.timeZone}"` : ''}>${page.content}</main>
</div>
<footer class="foot">${renderLanguages(texts)}</footer>
</body>`;
  return renderDocument(texts, { ...page, body, withPageScript: true });
}

function renderNavigation(texts: FrameTexts, { sections, here }: ConsolePage): Html {
  const home = { path: '/', label: texts.start };
  return html`<ul>${renderEntry(home, here)}${sections.map(
    ({ title, entries }) => html`<li class="group">${title}</li>${entries.map((entry) => renderEntry(entry, here))}`,
  )}</ul>`;
}

/** Says on a phone where one is, while the menu is closed. */
function nameHere(texts: FrameTexts, { sections, here }: ConsolePage): string {
  if (here === '/') return texts.start;
  return sections.flatMap(({ entries }) => entries).find(({ path }) => path === here)?.label ?? '';
}

function renderEntry(entry: NavigationEntry, here: string): Html {
  const current = entry.path === here ? html` aria-current="page"` : '';
  return html`<li><a href="${entry.path}"${current}>${entry.label}</a></li>`;
}
