/** Renders the servers that are scraped for their load, unusable ones first. */
import { html } from 'hono/html';
import type { Html } from '../../pages/layout.ts';
import { renderTable } from '../frame/table.ts';

import type { ConsoleTexts } from '../texts/texts.ts';
import type { ScrapedServerView } from './model-views.ts';

const LISTED_SERVERS = 100;
const TAG_BY_STATE = { refused: 'tag bad', stale: 'tag warn', fresh: 'tag good' } as const;
const STATES = Object.keys(TAG_BY_STATE);

export function renderScrapedServers(texts: ConsoleTexts, servers: readonly ScrapedServerView[]): Html {
  const t = texts.models;
  const listed = servers.toSorted((a, b) => STATES.indexOf(a.state) - STATES.indexOf(b.state)).slice(0, LISTED_SERVERS);
  const rows = listed.map(({ name, kind, state, ageMs, reason }) => [
    html`<code>${name}</code>`,
    kind ?? '–',
    html`<span class="${TAG_BY_STATE[state]}">${t.states[state]}</span>`,
    ageMs === undefined ? t.never : `${texts.format.number(ageMs / 1000)} s`,
    // The last column, since it is long, and the others must be visible without scrolling.
    reason ?? '–',
  ]);
  const columns = [t.server, t.kind, t.state, t.age, t.lastFailure];
  return html`<section class="card stack" aria-labelledby="scraped"><h2 id="scraped">${t.scraped}</h2><p class="soft">${t.scrapedLead}</p>
${servers.length === 0 ? html`<p class="empty">${t.noScraped}</p>` : renderTable(texts, { label: t.scraped, columns, rows, textColumns: 5 })}
${servers.length > listed.length ? html`<p class="soft">${t.moreServers(servers.length - listed.length)}</p>` : ''}</section>`;
}
