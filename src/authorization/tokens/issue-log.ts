/**
 * Records issued tokens in the audit log, a limited number an hour for one person and application. A client in a loop gets all
 * its tokens; the next event that is written has the number of omitted ones. Each process counts for itself: N processes write N
 * times as many.
 */
import type { BoundStatement } from '../../database/store.ts';
import type { World } from '../../world.ts';
import { type AuditEvent, auditStatement } from '../accounts/audit-store.ts';

export interface IssueLog {
  prepare(event: IssuedTokens): IssueRecord;
}

/** If disposed without a call of `count` (nothing was stored), a later record gets the number of omitted events. */
export interface IssueRecord extends Disposable {
  /** Must commit together with the tokens; empty if this hour has enough events. */
  readonly statements: readonly BoundStatement[];
  /** Call it after the tokens have committed: a refused request does not count. */
  readonly count: () => void;
}

export interface IssuedTokens extends Pick<AuditEvent, 'userId' | 'address'> {
  readonly clientId: string;
  readonly scope: string;
  readonly nowMs: number;
}

export const ISSUES_AN_HOUR = 100;
const WINDOW_MS = 3_600_000;
/** The most subjects (person and application) kept in memory; one more drops the oldest. */
const MAX_SUBJECTS = 10_000;

interface Window {
  endsAtMs: number;
  written: number;
  omitted: number;
}

export function createIssueLog({ monotonicMs }: Pick<World, 'monotonicMs'>): IssueLog {
  const windows = new Map<string, Window>();
  return {
    prepare: ({ userId, clientId, address, scope, nowMs }) => {
      const window = openWindow(windows, `${clientId} ${userId ?? ''}`, monotonicMs());
      if (window.written >= ISSUES_AN_HOUR) return createRecord([], () => (window.omitted += 1));
      // Reset at once, since another request may be prepared before this one commits.
      let { omitted } = window;
      window.omitted = 0;
      const details = { scope, ...(omitted === 0 ? {} : { not_recorded: omitted }) };
      const count = () => {
        window.written += 1;
        omitted = 0;
      };
      return createRecord(
        [auditStatement({ kind: 'token_issued', userId, clientId, address, details }, nowMs)],
        count,
        () => (window.omitted += omitted),
      );
    },
  };
}

function createRecord(
  statements: readonly BoundStatement[],
  count: () => void,
  giveBack: () => void = () => {},
): IssueRecord {
  return { statements, count, [Symbol.dispose]: giveBack };
}

function openWindow(windows: Map<string, Window>, subject: string, nowMs: number): Window {
  const known = windows.get(subject);
  if (known !== undefined && known.endsAtMs > nowMs) return known;
  const [first] = windows.keys();
  if (known === undefined && windows.size >= MAX_SUBJECTS && first !== undefined) windows.delete(first);
  const window = { endsAtMs: nowMs + WINDOW_MS, written: 0, omitted: known?.omitted ?? 0 };
  windows.set(subject, window);
  return window;
}
