/**
 * Tickets: short-lived proofs that are taken once (the set-up link, the second step of a sign-in, the challenge of a
 * passkey, a sign-in under way at an upstream provider, a secret to show once, an answer on its way to a client). A ticket has a kind and is found under no other; its
 * content is encrypted with its digest as associated data, so a copy of the table reveals nothing and signs in no one.
 */
import { createHash } from 'node:crypto';
import { type BoundStatement, type Store, statement } from '../../database/store.ts';
import type { SecretCipher } from '../../encryption/secret-cipher.ts';
import type { World } from '../../world.ts';

export type TicketKind =
  | 'setup'
  | 'second-step'
  | 'passkey-sign-in'
  | 'passkey-registration'
  | 'upstream'
  | 'shown-once'
  | 'to-client'
  | 'password-link';

export interface TicketDependencies {
  readonly store: Store;
  readonly world: World;
  readonly cipher: SecretCipher;
}

const insertTicketSql = statement(
  'insert-ticket',
  'INSERT INTO tickets (token_hash, kind, content, expires_at_ms) VALUES ($1, $2, $3, $4)',
);
const readTicketSql = statement<{ content: Uint8Array }>(
  'read-ticket',
  'SELECT content FROM tickets WHERE token_hash = $1 AND kind = $2 AND expires_at_ms > $3',
);
// The delete decides who took it: of two at once, one gets the row.
const takeTicketSql = statement<{ content: Uint8Array }>(
  'take-ticket',
  'DELETE FROM tickets WHERE token_hash = $1 AND kind = $2 AND expires_at_ms > $3 RETURNING content',
);
function hashTicket(token: string): string {
  return createHash('sha256').update(`trivet ticket ${token}`).digest('base64url');
}

export function ticketAssociatedData(kind: TicketKind, tokenHash: string): string {
  return `ticket:${kind}:${tokenHash}`;
}

const dropTicketSql = statement('drop-ticket', 'DELETE FROM tickets WHERE token_hash = $1');

export interface NewTicket {
  /** Anything that JSON can say. */
  readonly content: unknown;
  readonly lifetimeMs: number;
}

/** A ticket that is good once the statement has committed. Its token is kept nowhere. */
export function createTicket(
  { world, cipher }: Omit<TicketDependencies, 'store'>,
  kind: TicketKind,
  ticket: NewTicket,
): { readonly token: string; readonly statement: BoundStatement } {
  const token = Buffer.from(world.randomBytes(32)).toString('base64url');
  const tokenHash = hashTicket(token);
  const content = cipher.encrypt(JSON.stringify(ticket.content), ticketAssociatedData(kind, tokenHash));
  const parameters = [tokenHash, kind, content, world.nowMs() + ticket.lifetimeMs];
  return { token, statement: { statement: insertTicketSql, parameters } };
}

/** The ticket is worth nothing any more. */
export function dropTicketStatement(token: string): BoundStatement {
  return { statement: dropTicketSql, parameters: [hashTicket(token)] };
}

/** Issues a ticket for `content` (anything JSON can say) and returns its token, which is kept nowhere. */
export async function issueTicket(
  dependencies: TicketDependencies,
  kind: TicketKind,
  ticket: NewTicket,
): Promise<string> {
  const { token, statement: insert } = createTicket(dependencies, kind, ticket);
  await dependencies.store.write(insert.statement, insert.parameters);
  return token;
}

/** Reads the ticket without taking it. */
export async function findTicket<T>(
  dependencies: TicketDependencies,
  kind: TicketKind,
  token: string,
): Promise<T | undefined> {
  const rows = await dependencies.store.read(readTicketSql, [hashTicket(token), kind, dependencies.world.nowMs()]);
  return openTicket<T>(dependencies, kind, token, rows);
}

/** Takes the ticket. A second caller finds nothing. */
export async function takeTicket<T>(
  dependencies: TicketDependencies,
  kind: TicketKind,
  token: string,
): Promise<T | undefined> {
  const rows = await dependencies.store.write(takeTicketSql, [hashTicket(token), kind, dependencies.world.nowMs()]);
  return openTicket<T>(dependencies, kind, token, rows);
}

function openTicket<T>(
  { cipher }: TicketDependencies,
  kind: TicketKind,
  token: string,
  rows: readonly { readonly content: Uint8Array }[],
): T | undefined {
  const [row] = rows;
  if (row === undefined) return undefined;
  return JSON.parse(cipher.decrypt(row.content, ticketAssociatedData(kind, hashTicket(token))).toString('utf8')) as T;
}
