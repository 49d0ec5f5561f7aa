/**
 * Stores mails that wait to be sent, encrypted, in the transaction that causes them, so that neither is ever stored without the
 * other. A mail has links with which people sign in: its row is deleted once it is sent.
 */
import { createEncryptedColumn } from '../database/reencrypt-store.ts';
import { type BoundStatement, type Row, type Store, statement } from '../database/store.ts';

export interface WaitingMail {
  readonly id: string;
  readonly content: Uint8Array;
  readonly attempts: number;
  readonly expires_at_ms: number;
}

const insertMailSql = statement(
  'insert-mail',
  'INSERT INTO mails (id, content, due_at_ms, expires_at_ms, attempts) VALUES ($1, $2, $3, $4, 0)',
);
// A mail that is due much later than the longest wait was postponed while the clock was wrong.
const dueMailsSql = statement<WaitingMail>(
  'due-mails',
  `SELECT id, content, attempts, expires_at_ms FROM mails WHERE due_at_ms <= $1 OR due_at_ms > $2
   ORDER BY due_at_ms, id LIMIT $3`,
);
// "attempts" is the fencing token: of two processes that read the mail, one counts the attempt, and that one sends it.
const leaseMailSql = statement<{ id: string }>(
  'claim-mail',
  'UPDATE mails SET attempts = attempts + 1, due_at_ms = $3 WHERE id = $1 AND attempts = $2 RETURNING id',
);
const postponeMailSql = statement('postpone-mail', 'UPDATE mails SET due_at_ms = $3 WHERE id = $1 AND attempts = $2');
const deleteMailSql = statement('delete-mail', 'DELETE FROM mails WHERE id = $1 AND attempts = $2');
const MAX_COUNTED = 10_000;
const countMailsSql = statement<{ waiting: number }>(
  'count-mails',
  'SELECT COUNT(*) AS waiting FROM (SELECT 1 FROM mails LIMIT $1) AS waiting_mails',
);

/** Counted up to 10,000, since metrics read it often. */
export async function countWaitingMails(store: Store): Promise<number> {
  const [row] = await store.read(countMailsSql, [MAX_COUNTED]);
  return row?.waiting ?? 0;
}

export function mailAssociatedData(id: string): string {
  return `mail:${id}`;
}

export interface NewMail {
  readonly id: string;
  readonly content: Uint8Array;
  readonly nowMs: number;
  readonly expiresAtMs: number;
}

export function insertMailStatement({ id, content, nowMs, expiresAtMs }: NewMail): BoundStatement {
  return { statement: insertMailSql, parameters: [id, content, nowMs, expiresAtMs] };
}

export interface DueQuery {
  readonly nowMs: number;
  /** A mail that is due later than this is due now. */
  readonly latestMs: number;
  readonly limit: number;
}

export async function listDueMails(store: Store, { nowMs, latestMs, limit }: DueQuery): Promise<WaitingMail[]> {
  return await store.read(dueMailsSql, [nowMs, latestMs, limit]);
}

/** Acquires a lease on the mail until `untilMs`, and counts the attempt. Returns undefined when another process has the lease. */
export async function leaseMail(store: Store, mail: WaitingMail, untilMs: number): Promise<WaitingMail | undefined> {
  const rows = await store.write(leaseMailSql, [mail.id, mail.attempts, untilMs]);
  return rows.length === 0 ? undefined : { ...mail, attempts: mail.attempts + 1 };
}

export async function postpone(store: Store, { id, attempts }: WaitingMail, dueAtMs: number): Promise<void> {
  await store.write(postponeMailSql, [id, attempts, dueAtMs]);
}

export async function remove(store: Store, { id, attempts }: WaitingMail): Promise<void> {
  await store.write<Row>(deleteMailSql, [id, attempts]);
}

export const ENCRYPTED_MAILS = createEncryptedColumn({
  name: 'mails that wait',
  table: 'mails',
  column: 'content',
  keys: ['id'],
  start: [''],
  associatedData: (row) => mailAssociatedData(row.key_1 as string),
});
