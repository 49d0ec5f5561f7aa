/**
 * Stores the audit log: who did what to which account, from where. A change and its event commit in one transaction, so neither
 * exists without the other. Events that strangers or looping clients can cause are limited (refusal-log.ts, issue-log.ts). No
 * statement changes an event; only the sweep deletes them, after the retention period.
 */
import { randomUUID } from 'node:crypto';
import {
  type BoundStatement,
  conditionalProcedure,
  type Procedure,
  type Store,
  statement,
  type Transaction,
} from '../../database/store.ts';

export const AUDIT_KINDS = [
  'sign_in',
  'sign_in_failed',
  'sign_out',
  'session_ended',
  'user_created',
  'user_disabled',
  'user_enabled',
  'user_changed',
  'password_set',
  'password_changed',
  'password_link_created',
  'password_forgotten',
  'user_invited',
  'administrator_added',
  'administrator_removed',
  'totp_enabled',
  'totp_disabled',
  'recovery_code_used',
  'recovery_codes_renewed',
  'passkey_added',
  'passkey_removed',
  'upstream_linked',
  'upstream_unlinked',
  'organization_created',
  'organization_changed',
  'consent_granted',
  'consent_denied',
  'consent_revoked',
  'token_issued',
  'token_revoked',
  'code_replayed',
  'refresh_reused',
  'client_authentication_failed',
  'secret_in_query',
  'device_approved',
  'device_denied',
  'application_created',
  'application_changed',
  'application_disabled',
  'application_enabled',
  'application_deleted',
  'application_secret_added',
  'application_secret_removed',
  'signing_keys_replaced',
  'personal_token_created',
  'personal_token_revoked',
  'model_promoted',
  'model_rolled_back',
  'model_imported',
  'repository_created',
  'repository_deleted',
  'hook_created',
  'hook_changed',
  'hook_key_changed',
  'hook_enabled',
  'hook_disabled',
  'hook_deleted',
  'bridge_changed',
  'bridge_deleted',
] as const;

export type AuditKind = (typeof AUDIT_KINDS)[number];

export interface AuditEvent {
  readonly kind: AuditKind;
  /** The person whose account the event concerns. */
  readonly userId?: string | undefined;
  /** The person who acted, if it is not `userId`. */
  readonly actorId?: string | undefined;
  readonly clientId?: string | undefined;
  readonly address?: string | undefined;
  /** Facts in words and numbers; never a secret. */
  readonly details?: Readonly<Record<string, string | number | boolean>> | undefined;
}

/** The first password of an account is recorded as set, each later one as changed. */
export function kindOfNewPassword({ passwordChangedAtMs }: { readonly passwordChangedAtMs: number | null }): AuditKind {
  return passwordChangedAtMs === null ? 'password_set' : 'password_changed';
}

export interface RecordedEvent extends AuditEvent {
  readonly id: string;
  readonly atMs: number;
}

interface EventRow {
  readonly id: string;
  readonly at_ms: number;
  readonly kind: AuditKind;
  readonly user_id: string | null;
  readonly actor_id: string | null;
  readonly client_id: string | null;
  readonly address: string | null;
  readonly details: string;
}

const EVENT_COLUMNS = 'id, at_ms, kind, user_id, actor_id, client_id, address, details';

const insertEventSql = statement(
  'insert-audit-event',
  `INSERT INTO audit_events (${EVENT_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
);
const eventsBeforeSql = statement<EventRow>(
  'audit-events-before',
  `SELECT ${EVENT_COLUMNS} FROM audit_events WHERE (at_ms, id) < ($1, $2) ORDER BY at_ms DESC, id DESC LIMIT $3`,
);
const userEventsBeforeSql = statement<EventRow>(
  'audit-events-of-user-before',
  `SELECT ${EVENT_COLUMNS} FROM audit_events
   WHERE user_id = $4 AND (at_ms, id) < ($1, $2) ORDER BY at_ms DESC, id DESC LIMIT $3`,
);

/** Inserts the audit row of `event`. Execute it in the transaction that makes the change. */
export function auditStatement(event: AuditEvent, nowMs: number): BoundStatement {
  return {
    statement: insertEventSql,
    parameters: [
      // The id only distinguishes two events of the same millisecond.
      randomUUID(),
      nowMs,
      event.kind,
      event.userId ?? null,
      event.actorId ?? null,
      event.clientId ?? null,
      event.address ?? null,
      JSON.stringify(event.details ?? {}),
    ],
  };
}

export interface RecordedChange {
  /** Returns a row unless there is nothing to change. */
  readonly change: BoundStatement;
  /** Executed only after a change: its consequences, and its audit event. */
  readonly statements: readonly BoundStatement[];
}

/** Returns false, and records nothing, if there was nothing to change. */
export const changeAndRecord: Procedure<RecordedChange, boolean> = conditionalProcedure(
  import.meta.url,
  'changeAndRecord',
  changeAndRecordIn,
);

/** The same in a transaction of the caller. */
export async function changeAndRecordIn(
  transaction: Transaction,
  { change, statements }: RecordedChange,
): Promise<boolean> {
  if ((await transaction.run(change.statement, change.parameters)).length === 0) return false;
  await transaction.runAll(statements);
  return true;
}

/** The last event of the page before. */
export interface EventCursor {
  readonly atMs: number;
  readonly id: string;
}

export interface EventQuery {
  /** Limits the list to events of this account; all accounts when absent. */
  readonly userId?: string | undefined;
  readonly before?: EventCursor | undefined;
  readonly limit: number;
}

const NEWEST: EventCursor = { atMs: Number.MAX_SAFE_INTEGER, id: '' };

/** Newest first. */
export async function listEvents(store: Pick<Store, 'read'>, query: EventQuery): Promise<RecordedEvent[]> {
  const { atMs, id } = query.before ?? NEWEST;
  const rows =
    query.userId === undefined
      ? await store.read(eventsBeforeSql, [atMs, id, query.limit])
      : await store.read(userEventsBeforeSql, [atMs, id, query.limit, query.userId]);
  return rows.map(toEvent);
}

function toEvent(row: EventRow): RecordedEvent {
  return {
    id: row.id,
    atMs: row.at_ms,
    kind: row.kind,
    userId: row.user_id ?? undefined,
    actorId: row.actor_id ?? undefined,
    clientId: row.client_id ?? undefined,
    address: row.address ?? undefined,
    details: JSON.parse(row.details) as Record<string, string | number | boolean>,
  };
}
