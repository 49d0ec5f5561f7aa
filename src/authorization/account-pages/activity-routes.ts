/** Serves the page on which a person sees their own audit log. */
import { html } from 'hono/html';
import { Failure } from '../../errors.ts';
import { renderMoment } from '../../pages/elements.ts';
import type { Html } from '../../pages/layout.ts';
import { type EventCursor, listEvents, type RecordedEvent } from '../accounts/audit-store.ts';
import { findApplication } from '../applications/application-store.ts';
import { type Messages, readMessages } from '../messages/messages.ts';
import type { AccountPages, PageRequest } from './account-pages.ts';

const PAGE_SIZE = 50;

export function addActivityRoutes({ context, page }: AccountPages): void {
  page('/account/activity', (request) => showEvents(context, request));
}

/** Throws `not_found`, not `forbidden`: a person without access does not learn that the page exists. */
export function checkAdmin({ c, session }: PageRequest): void {
  const messages = readMessages(c);
  if (!session.user.isAdmin) throw new Failure('not_found', messages.error.notFound);
}

const HERE = '/account/activity';

async function showEvents({ store }: AccountPages['context'], { c, session, show }: PageRequest): Promise<Response> {
  const messages = readMessages(c);
  const t = messages.activity;
  const search = { userId: session.user.id, before: parseCursor(c.req.query('before')), limit: PAGE_SIZE + 1 };
  const events = await listEvents(store, search);
  const shown = events.slice(0, PAGE_SIZE);
  const last = shown.at(-1);
  const names = { applications: await findApplicationNames(store, shown) };
  const more =
    events.length > PAGE_SIZE && last
      ? html`<p><a class="button plain" href="${HERE}?before=${last.atMs}.${last.id}">${t.more}</a></p>`
      : '';
  const content = html`<div class="tight"><h1>${t.title}</h1><p class="soft">${t.lead}</p></div>
${shown.length === 0 ? html`<p class="empty">${t.none}</p>` : html`<ul class="list">${shown.map((event) => renderEvent(messages, event, names))}</ul>`}${more}`;
  return show({ title: t.title, here: HERE, content });
}

const WARNING_KINDS = new Set([
  'sign_in_failed',
  'code_replayed',
  'refresh_reused',
  'client_authentication_failed',
  'secret_in_query',
]);

export interface EventNames {
  /** Logins by user id; absent if all events are of one account. */
  readonly logins?: ReadonlyMap<string, string>;
  readonly applications: ReadonlyMap<string, string>;
}

/** Returns names by client id, without deleted applications. */
export async function findApplicationNames(
  store: AccountPages['context']['store'],
  events: readonly RecordedEvent[],
): Promise<Map<string, string>> {
  const clientIds = new Set(events.flatMap(({ clientId }) => clientId ?? []));
  const found = await Promise.all([...clientIds].map((clientId) => findApplication(store, clientId)));
  return new Map(found.flatMap((application) => (application ? [[application.clientId, application.name]] : [])));
}

export function renderEvent(messages: Messages, event: RecordedEvent, { logins, applications }: EventNames): Html {
  const { details = {}, clientId } = event;
  const application = clientId && applications.get(clientId);
  const facts = [
    logins && event.userId ? (logins.get(event.userId) ?? event.userId) : undefined,
    logins && event.actorId ? messages.activity.doneBy(logins.get(event.actorId) ?? event.actorId) : undefined,
    application ? `${application} (${clientId})` : clientId,
    event.address === '-' ? undefined : event.address,
  ].filter((fact) => fact !== undefined);
  // Details keep the English names of the audit log.
  const recorded = Object.entries(details).map(([name, value]) => `${name.replaceAll('_', ' ')}: ${value}`);
  const mark = WARNING_KINDS.has(event.kind) ? 'warn' : '';
  return html`<li class="item"><div><p><strong>${messages.audit[event.kind]}</strong>${mark ? html` <span class="tag warn">!</span>` : ''}</p>
<p class="small soft">${facts.join(' · ')}${recorded.length === 0 ? '' : html`${facts.length === 0 ? '' : ' · '}<span lang="en">${recorded.join(' · ')}</span>`}</p></div><span class="small soft">${renderMoment(messages, event.atMs)}</span></li>`;
}

function parseCursor(text: string | undefined): EventCursor | undefined {
  const match = /^(\d{1,16})\.([0-9a-f-]{36})$/.exec(text ?? '');
  return match ? { atMs: Number(match[1]), id: match[2] ?? '' } : undefined;
}
