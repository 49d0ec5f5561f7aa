/** Serves the audit log of all accounts for administrators, with filters and an export. */
import { z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { isFailure } from '../../errors.ts';
import type { HttpEnv } from '../../http/context.ts';
import type { Mistake } from '../../pages/elements.ts';
import { readExportFormat, respondExport } from '../../pages/export-rows.ts';
import { toSentence } from '../../pages/page-routes.ts';
import type { AccountPages, PageRequest } from '../account-pages/account-pages.ts';
import { checkAdmin, findApplicationNames } from '../account-pages/activity-routes.ts';
import { findLogins } from '../accounts/user-store.ts';
import { type AuditSearch, findEvents, searchAudit, toRow } from '../administration/audit-operations.ts';
import { type Messages, readMessages } from '../messages/messages.ts';
import { AUDIT, type AuditFilter, formatAuditFilter, renderAudit } from './audit-view.ts';

const PAGE_SIZE = 50;
const EXPORT_PAGE_SIZE = 200;

export function addAuditRoutes({ context, page }: AccountPages): void {
  page(AUDIT, (request) => {
    checkAdmin(request);
    return showAudit(context, request);
  });

  page(`${AUDIT}/export`, async (request) => {
    checkAdmin(request);
    const { c } = request;
    const messages = readMessages(c);
    const filter = readFilter(messages, c);
    // Checks the filter first: a page can show the mistake, but a download that has begun cannot.
    const { mistake } = await findPage(messages, context.store, { filter, before: undefined });
    if (mistake !== undefined) return c.redirect(AUDIT + formatAuditFilter(filter), 303);
    const search = parseSearch(messages, filter, { limit: EXPORT_PAGE_SIZE });
    const format = readExportFormat(c.req.query('format'));
    return respondExport(c, { name: 'audit', format, columns: COLUMNS, pages: readAll(context.store, search) });
  });
}

const COLUMNS = ['at', 'kind', 'user', 'userId', 'actor', 'actorId', 'clientId', 'address', 'details', 'id'] as const;

async function* readAll(store: AccountPages['context']['store'], search: AuditSearch) {
  for (let before = search.before; ; ) {
    const { found, next } = await findEvents(store, { ...search, before });
    const logins = await findLogins(
      store,
      found.flatMap(({ userId, actorId }) => [userId, actorId]),
    );
    yield found.map((event) => {
      const { details, ...row } = toRow(event, logins);
      return { ...row, details: JSON.stringify(details) };
    });
    if (next === null) return;
    before = next;
  }
}

function readFilter({ format }: Messages, c: Context<HttpEnv>): AuditFilter {
  const read = (name: string) => (c.req.query(name) ?? '').trim();
  const [since, until] = [read('since'), read('until')];
  return {
    user: read('user'),
    by: read('by'),
    kind: read('kind'),
    repository: read('repository'),
    hook: read('hook'),
    since,
    until,
    zone: since + until === '' ? '' : format.timeZone,
  };
}

/** Throws a `ZodError` for an invalid kind or time. A time without a zone is in that of the reader, as the page shows times. */
function parseSearch(
  messages: Messages,
  filter: AuditFilter,
  more: { readonly limit: number; readonly before?: string | undefined },
): AuditSearch {
  const given = Object.entries({
    ...filter,
    since: toInstant(messages, filter.since),
    until: toInstant(messages, filter.until),
  });
  return searchAudit.input.parse({ ...Object.fromEntries(given.filter(([, value]) => value !== '')), ...more });
}

function toInstant({ format }: Messages, time: string): string {
  return format.readInstant(time)?.toISOString() ?? time;
}

async function showAudit({ store }: AccountPages['context'], { c, show }: PageRequest): Promise<Response> {
  const messages = readMessages(c);
  const filter = readFilter(messages, c);
  const { found, next, mistake } = await findPage(messages, store, { filter, before: c.req.query('before') });
  const logins = await findLogins(
    store,
    found.flatMap(({ userId, actorId }) => [userId, actorId]),
  );
  const names = { logins, applications: await findApplicationNames(store, found) };
  const more = next === null ? undefined : AUDIT + formatAuditFilter(filter, { before: next });
  const content = renderAudit(messages, {
    events: found,
    names,
    filter,
    next: more,
    isCut: next !== null && found.length < PAGE_SIZE,
    mistake,
  });
  return show({ title: messages.activity.allTitle, here: AUDIT, content }, { status: mistake ? 422 : 200 });
}

async function findPage(
  messages: Messages,
  store: AccountPages['context']['store'],
  { filter, before }: { readonly filter: AuditFilter; readonly before: string | undefined },
) {
  try {
    return {
      ...(await findEvents(store, parseSearch(messages, filter, { limit: PAGE_SIZE, before }))),
      mistake: undefined,
    };
  } catch (error) {
    return { found: [], next: null, mistake: explain(messages, error) };
  }
}

function explain(messages: Messages, error: unknown): Mistake {
  // The filter in the URL may be typed by hand: an unknown login, or values that the schema refuses.
  if (isFailure(error) && error.code === 'not_found') return { message: messages.explain(toSentence(error.message)) };
  if (error instanceof z.ZodError)
    return { message: messages.activity.wrongFilter, field: String(error.issues[0]?.path[0]) };
  throw error;
}
