/** Lists a person's sessions and the applications that act for them, and ends them. */
import { html } from 'hono/html';
import { renderBadge, renderDone, renderMoment, renderQuestion } from '../../pages/elements.ts';
import type { Html } from '../../pages/layout.ts';
import { readField } from '../../pages/page-routes.ts';
import { findDone } from '../../pages/signed-in-pages.ts';
import { auditStatement, changeAndRecord } from '../accounts/audit-store.ts';
import { endOtherSessionsStatement, endSession, listSessions, type SessionEntry } from '../accounts/session-store.ts';
import { describeScope } from '../messages/describe-scope.ts';
import { type Messages, readMessages } from '../messages/messages.ts';
import { listAuthorizedApplications, revokeConsent } from '../oauth/protocol/consent-store.ts';
import { clientAddress } from '../sign-in/read-client-address.ts';
import { prepareEndedCount } from '../tokens/ended-tokens-store.ts';
import type { AccountPages } from './account-pages.ts';

export function addSessionRoutes(pages: AccountPages): void {
  addSessions(pages);
  addAuthorizations(pages);
}

function addSessions({ context, page, form }: AccountPages): void {
  page('/account/sessions', async ({ c, session, show }) => {
    const messages = readMessages(c);
    const t = messages.sessions;
    const entries = await listSessions(context.store, session.user.id, context.world.nowMs());
    const others = entries.length > 1;
    const content = html`<div class="tight"><h1>${t.title}</h1><p class="soft">${t.lead}</p></div>
${renderDone(findDone(c, { ended: t.ended, others: t.endedOthers }))}
<ul class="list">${entries.map((entry) => renderSession(messages, entry, session))}</ul>
${others ? renderQuestion(messages, { label: t.endOthers, question: t.askEndOthers, action: '/account/sessions/end-others', csrfToken: session.csrfToken }) : ''}`;
    return show({ title: t.title, here: '/account/sessions', content });
  });

  form('/account/sessions/end', async ({ c, session, form }) => {
    const end = { sessionId: readField(form, 'session_id'), userId: session.user.id, address: clientAddress(c) };
    await endSession(context.store, { ...end, kind: 'session_ended', nowMs: context.world.nowMs() });
    return c.redirect('/account/sessions?done=ended', 303);
  });

  form('/account/sessions/end-others', async ({ c, session }) => {
    const event = { kind: 'session_ended', userId: session.user.id, address: clientAddress(c) } as const;
    await context.store.call(changeAndRecord, {
      change: endOtherSessionsStatement(session.user.id, session.id),
      statements: [auditStatement({ ...event, details: { which: 'all others' } }, context.world.nowMs())],
    });
    return c.redirect('/account/sessions?done=others', 303);
  });
}

function renderSession(
  messages: Messages,
  entry: SessionEntry,
  current: { readonly id: string; readonly csrfToken: string },
): Html {
  const t = messages.sessions;
  const isThis = entry.id === current.id;
  return html`<li class="item"><div class="tight">
<p><strong>${describeBrowser(messages, entry.userAgent)}</strong> ${isThis ? html`<span class="tag good">${t.this}</span>` : ''}</p>
<p class="small soft">${t.signedIn(messages.format.date(entry.authTimeMs), messages.methods[entry.method])} · ${entry.address} · ${t.seen} ${renderMoment(messages, entry.lastSeenAtMs)}</p></div>
${isThis ? '' : renderQuestion(messages, { label: t.end, subject: `${describeBrowser(messages, entry.userAgent)}, ${entry.address}`, question: t.askEnd, action: '/account/sessions/end', csrfToken: current.csrfToken, fields: { session_id: entry.id } })}</li>`;
}

const BROWSERS = [
  ['Edg', 'Edge'],
  ['OPR', 'Opera'],
  ['Firefox', 'Firefox'],
  ['Chrome', 'Chrome'],
  ['Safari', 'Safari'],
] as const;
const SYSTEMS = [
  ['Android', 'Android'],
  ['iPhone', 'iPhone'],
  ['iPad', 'iPad'],
  ['Windows', 'Windows'],
  ['Mac OS X', 'macOS'],
  ['CrOS', 'ChromeOS'],
  ['Linux', 'Linux'],
] as const;

/** Names browser and system so that the owner recognizes the session. In each list, specific names come before general ones. */
export function describeBrowser(messages: Messages, userAgent: string): string {
  const browser = BROWSERS.find(([mark]) => userAgent.includes(`${mark}/`))?.[1];
  const system = SYSTEMS.find(([mark]) => userAgent.includes(mark))?.[1];
  if (browser === undefined) return userAgent.slice(0, 40) || messages.unknown;
  return system === undefined ? browser : `${browser} · ${system}`;
}

function addAuthorizations({ context, page, form }: AccountPages): void {
  page('/account/authorizations', async ({ c, session, show }) => {
    const messages = readMessages(c);
    const t = messages.authorizations;
    const entries = await listAuthorizedApplications(context.store, session.user.id, context.world.nowMs());
    const list = entries.map(
      (entry) => html`<li class="item"><div class="row">${renderBadge(entry.name)}<div class="tight">
<p><strong>${entry.name}</strong> <span class="soft small">${hostOf(entry.homepage)}</span></p>
<p class="tags">${entry.scopes.map((scope) => html`<span class="tag">${describeScope(messages, scope).title}</span>`)}</p>
<p class="small soft">${t.since(messages.format.date(entry.firstAllowedAtMs))}${entry.lastUsedAtMs === undefined ? '' : ` · ${t.used(messages.format.date(entry.lastUsedAtMs))}`} · ${t.live(entry.liveTokens)}</p></div></div>
${renderQuestion(messages, { label: t.revoke, subject: entry.name, question: t.askRevoke(entry.name), action: '/account/authorizations/revoke', csrfToken: session.csrfToken, fields: { client_id: entry.clientId } })}</li>`,
    );
    const content = html`<div class="tight"><h1>${t.title}</h1><p class="soft">${t.lead}</p></div>
${renderDone(findDone(c, { revoked: t.revoked }))}
${entries.length === 0 ? html`<p class="empty">${t.none}</p>` : html`<ul class="list">${list}</ul>`}`;
    return show({ title: t.title, here: '/account/authorizations', content });
  });

  form('/account/authorizations/revoke', async ({ c, session, form }) => {
    const clientId = readField(form, 'client_id');
    const nowMs = context.world.nowMs();
    const countEnded = await prepareEndedCount(context, { reason: 'consent', userId: session.user.id, clientId });
    await revokeConsent(context.store, { userId: session.user.id, clientId, nowMs, address: clientAddress(c) });
    countEnded();
    return c.redirect('/account/authorizations?done=revoked', 303);
  });
}

function hostOf(homepage: string): string {
  return URL.canParse(homepage) ? new URL(homepage).host : '';
}
