/** Implements the search of the audit log, with filters and pages, and decides who may read it. */
import { z } from '@hono/zod-openapi';
import type { Store } from '../../database/store.ts';
import { BY_COMMAND } from '../../operations/by-command.ts';
import { describeOperation, type Implementation, implement } from '../../operations/operation.ts';
import { pageLimit } from '../../operations/paging.ts';
import {
  AUDIT_KINDS,
  type AuditKind,
  type EventCursor,
  listEvents,
  type RecordedEvent,
} from '../accounts/audit-store.ts';
import { findLogins } from '../accounts/user-store.ts';
import { findPerson, type PeopleDependencies } from './person.ts';

const eventSchema = z
  .object({
    id: z.string(),
    at: z.string(),
    atMs: z.int(),
    kind: z.string(),
    userId: z.string().optional().openapi({ description: 'The person whose account the event concerns' }),
    user: z.string().optional().openapi({ description: 'The login of that account' }),
    actorId: z.string().optional().openapi({ description: 'The person who did it, if it is not the account itself' }),
    actor: z.string().optional(),
    clientId: z.string().optional(),
    address: z.string().optional(),
    details: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
  })
  .openapi('AuditEvent');

export type AuditRow = z.infer<typeof eventSchema>;

const CURSOR = /^(\d{1,16})\.([0-9a-f-]{36})$/;

export const searchAudit = describeOperation({
  tag: 'Audit',
  scope: 'admin:audit',
  name: 'searchAudit',
  method: 'get',
  path: '/audit',
  summary: 'Search the audit log, newest first',
  input: z.object({
    user: z.string().max(100).optional().openapi({ description: 'Login of the account that the event concerns' }),
    by: z.string().max(100).optional().openapi({ description: 'Login of the person who did it' }),
    kind: z.enum(AUDIT_KINDS).optional(),
    repository: z.string().max(300).optional().openapi({ description: 'OWNER/NAME of the repository that changed' }),
    hook: z.coerce.number().int().min(1).optional().openapi({ description: 'The id of the webhook that changed' }),
    since: z.iso.datetime({ offset: true }).optional(),
    until: z.iso.datetime({ offset: true }).optional(),
    before: z.string().regex(CURSOR).optional().openapi({ description: 'The `next` of the page before' }),
    limit: pageLimit(50),
  }),
  output: z
    .object({
      events: z.array(eventSchema),
      next: z.string().nullable().openapi({ description: 'null: there are no older events' }),
    })
    .openapi('AuditPage'),
});

export type AuditSearch = z.output<typeof searchAudit.input>;

export function implementAudit({ store }: PeopleDependencies): Implementation[] {
  return [
    implement(searchAudit, async (search) => {
      const { found, next } = await findEvents(store, search);
      const logins = await findLogins(
        store,
        found.flatMap(({ userId, actorId }) => [userId, actorId]),
      );
      return { events: found.map((event) => toRow(event, logins)), next };
    }),
  ];
}

const READ_AT_ONCE = 500;
/** The most events read in one call, so that a search that matches few does not read years of them. */
export const MAX_READ = 10_000;

/**
 * Newest first. Fewer than the limit with a `next` mean that the search stopped after `MAX_READ` events. Throws `not_found` for a
 * login that no person has.
 */
export async function findEvents(
  store: Store,
  search: AuditSearch,
): Promise<{ readonly found: RecordedEvent[]; readonly next: string | null }> {
  const userId = search.user === undefined ? undefined : (await findPerson(store, search.user)).id;
  const matches = createMatcher(search, search.by === undefined ? undefined : (await findPerson(store, search.by)).id);
  const sinceMs = readTime(search.since) ?? -Infinity;
  const found: RecordedEvent[] = [];
  let before = readStart(search);
  for (let read = 0; read < MAX_READ; read += READ_AT_ONCE) {
    const events = await listEvents(store, { userId, before, limit: READ_AT_ONCE });
    for (const event of events) {
      if (event.atMs < sinceMs) return { found, next: null };
      before = event;
      if (matches(event)) found.push(event);
      if (found.length === search.limit) return { found, next: formatCursor(event) };
    }
    if (events.length < READ_AT_ONCE) return { found, next: null };
  }
  return { found, next: before === undefined ? null : formatCursor(before) };
}

/** Events of an account that a guesser, an application or a thief of tokens causes, not its person. */
const NOT_BY_PERSON: ReadonlySet<AuditKind> = new Set([
  'sign_in_failed',
  'password_forgotten',
  'client_authentication_failed',
  'secret_in_query',
  'code_replayed',
  'refresh_reused',
]);

/** A person who changes their own account is recorded as `userId` only, not as `actorId`. */
function createMatcher(
  { kind, repository, hook }: AuditSearch,
  actorId: string | undefined,
): (event: RecordedEvent) => boolean {
  const fullName = repository?.toLowerCase();
  return (event) =>
    (kind === undefined || event.kind === kind) &&
    (fullName === undefined || String(event.details?.repository).toLowerCase() === fullName) &&
    (hook === undefined || event.details?.hook === hook) &&
    (actorId === undefined || findActorId(event) === actorId);
}

/** Returns undefined for a command on the store: no account is its actor, not even the one that it changes. */
function findActorId({ kind, actorId, userId, details }: RecordedEvent): string | undefined {
  if (details?.by === BY_COMMAND.by || NOT_BY_PERSON.has(kind)) return actorId;
  return actorId ?? userId;
}

function readTime(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Date.parse(text);
}

/** The search starts after the last event of the page before, or at `until`. */
function readStart({ before, until }: AuditSearch): EventCursor | undefined {
  const [, atMs, id = ''] = CURSOR.exec(before ?? '') ?? [];
  if (atMs !== undefined) return { atMs: Number(atMs), id };
  const untilMs = readTime(until);
  return untilMs === undefined ? undefined : { atMs: untilMs, id: '' };
}

function formatCursor({ atMs, id }: EventCursor): string {
  return `${atMs}.${id}`;
}

export function toRow(event: RecordedEvent, logins: ReadonlyMap<string, string>): AuditRow {
  const { userId, actorId, details = {}, ...rest } = event;
  return {
    ...rest,
    at: new Date(event.atMs).toISOString(),
    userId,
    user: userId === undefined ? undefined : logins.get(userId),
    actorId,
    actor: actorId === undefined ? undefined : logins.get(actorId),
    details: { ...details },
  };
}
