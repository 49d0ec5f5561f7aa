/** Disables hooks whose receivers answered 410 or have failed for days, and stores the last response of each hook. */
import { type BoundStatement, type Row, type Statement, statement } from '../../../database/store.ts';
import { bindRows, multiRowStatement } from '../../../database/value-rows.ts';
import { type AttemptKey, hasCounted } from './attempt-result-store.ts';
import type { HookQueueChange } from './hook-queue-change-store.ts';

// Disables the hook only if the same transaction has held its hook queue, where the fence is checked: another worker may take the shard
// between the two statements.
const disableHookSql: Statement = statement(
  'hook-disable-failing',
  `UPDATE hooks SET disabled_at_ms = $2, disabled_reason = $3, updated_at_ms = $2
   WHERE id = $1 AND disabled_at_ms IS NULL
     AND (SELECT COUNT(*) FROM endpoint_queue q WHERE q.hook_id = $1 AND q.held_since_ms = $2) > 0
   RETURNING id, disabled_reason`,
);

/** The hooks that a transaction has disabled, from the answers to its statements. */
export function listDisabled(statements: readonly BoundStatement[], answers: readonly (readonly Row[])[]) {
  const rows = statements.flatMap((one, index) => (one.statement === disableHookSql ? (answers[index] ?? []) : []));
  return rows.map((row) => ({ hookId: row.id, reason: row.disabled_reason }));
}

/** Changes of `hooks`, in ascending order; must run after all changes of `endpoint_queue`. */
export function hookStatements(
  changes: readonly HookQueueChange[],
  responses: readonly LastResponse[],
  nowMs: number,
): BoundStatement[] {
  const disabled = changes.filter((change) => change.kind === 'disable');
  const disabling = disabled.map(({ hookId, reason }) => ({
    hookId,
    statements: [{ statement: disableHookSql, parameters: [hookId, nowMs, reason] }],
  }));
  if (disabling.length === 0) return lastResponseStatements(responses);
  const answered = responses.map((response) => ({
    hookId: response.hookId,
    statements: lastResponseStatements([response]),
  }));
  return [...disabling, ...answered]
    .sort((one, other) => one.hookId - other.hookId)
    .flatMap(({ statements }) => statements);
}

/** The last response of a hook's receiver, or why it is missing; shown as `result` and `result_code`. */
export interface LastResponse extends AttemptKey {
  readonly result: string;
  readonly status: number;
  /** The URL of the attempt: the response of a former URL is not shown for the present one. */
  readonly url: string | null;
}

const writeResponsesSql = multiRowStatement(
  'hook-write-result',
  { hookId: 'int', deliveryId: 'int', startedAtMs: 'int', result: 'text', status: 'int', url: 'text' },
  ({ values, v }) =>
    `UPDATE hooks SET result = ${v.result}, result_code = ${v.status} FROM ${values}
     WHERE hooks.id = ${v.hookId} AND hooks.url = ${v.url} AND ${hasCounted(v.hookId, v.deliveryId, v.startedAtMs)}`,
);

/** One row for each hook and URL. */
function lastResponseStatements(responses: readonly LastResponse[]): BoundStatement[] {
  const ascending = [...responses].sort((one, other) => one.hookId - other.hookId);
  return bindRows(writeResponsesSql, ascending);
}
