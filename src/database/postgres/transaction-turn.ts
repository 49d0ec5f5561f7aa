/** Makes PostgreSQL transactions of one kind wait for each other, by an advisory lock. */
import { createHash } from 'node:crypto';
import type { BoundStatement } from '../store.ts';

/**
 * Waits until no other transaction holds the lock, and holds it until its own transaction ends. It must be the first statement,
 * since in read committed each statement sees what was committed before it began. A row lock would not do: a statement that waits
 * for a row reads the row again, but not the other tables of its condition.
 */
export function waitForTurnStatement(turn: string): BoundStatement {
  const key = createHash('sha256').update(`trivet ${turn}`).digest().readUIntBE(0, 6);
  return { statement: { name: 'trivet_turn', text: 'SELECT pg_advisory_xact_lock($1)' }, parameters: [key] };
}
