/**
 * Records issued tokens in the audit log, a limited number an hour for one person and application. A client in a loop gets all
 * its tokens; the next event that is written has the number of omitted ones. Kept in this process: N processes write N times as
 * many.
 */
import type { BoundStatement } from '../../database/store.ts';
import type { World } from '../../world.ts';
import { type AuditEvent, auditStatement } from '../accounts/audit-store.ts';

export interface IssueLog {
  prepare(event: IssuedTokens): IssueRecord;
}

/** Disposed without `count` (nothing was stored): the omitted events that it took over go to a later record. */
export interface IssueRecord extends Disposable {
  /** These must be stored together with the tokens; empty when enough events are stored already. */
  readonly statements: readonly BoundStatement[];
  /** Must be called once the tokens are stored: a refused request counts for nothing. */
  readonly count: () => void;
}

export interface IssuedTokens extends Pick<AuditEvent, 'userId' | 'address'> {
  readonly clientId: string;
  readonly scope: string;
  readonly nowMs: number;
}

export const ISSUES_AN_HOUR = 100;
const WINDOW_MS = 3_600_000;
/** Beyond this the subject that came first is forgotten. */
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
      // Taken at once: another request may be prepared before this one is stored.
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
