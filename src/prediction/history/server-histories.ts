/** Keeps the histories of all servers of one target model. */
import { HISTORY_COLUMNS } from '../schema/columns.ts';
import type { MetricColumns } from '../schema/observation-table.ts';
import type { ServerIndex } from '../schema/server-index.ts';
import { createServerHistory, HISTORY_SIZE, type ServerHistory } from './server-history.ts';

export interface ServerHistories {
  /** Undefined for a server without reports. */
  find(server: number): ServerHistory | undefined;
  ensure(server: number): ServerHistory;
  /** Fills the history columns of the first `count` rows; `servers` has the number of each, -1 for an unknown one. */
  fill(columns: MetricColumns, servers: ArrayLike<number>, nowMs: number): void;
}

export function createServerHistories(index: ServerIndex): ServerHistories {
  const histories: (ServerHistory | undefined)[] = [];
  const known = new Float64Array(HISTORY_SIZE);
  index.onForget((server) => {
    histories[server] = undefined;
  });
  // Not by `histories[server]` alone: a look-up of -1, or beyond the end, costs ten times one inside.
  const find = (server: number) => (server >= 0 && server < histories.length ? histories[server] : undefined);
  return {
    find,
    ensure(server) {
      const history = histories[server] ?? createServerHistory();
      histories[server] = history;
      return history;
    },
    fill(columns, servers, nowMs) {
      // The arrays are looked up once for each call: looking them up for every row would cost more than reading them.
      const into = HISTORY_COLUMNS.map((name) => columns[name]);
      for (const column of into) clearColumn(column, columns.count);
      if (histories.length === 0) return;
      for (let row = 0; row < columns.count; row++) {
        const history = find(servers[row]!);
        if (history === undefined) continue;
        history.read(nowMs, known);
        for (let h = 0; h < HISTORY_SIZE; h++) into[h]![row] = known[h]!;
      }
    },
  };
}

/** A loop: for the few rows of a call, the start of `fill` takes longer than the loop. */
function clearColumn(column: Float64Array, count: number): void {
  for (let row = 0; row < count; row++) column[row] = Number.NaN;
}
