/** Computes the inputs that a caller with old metrics of servers would have sent. */
import { METRICS } from '../schema/input-fields.ts';
import { type ObservationTable, selectRows } from '../schema/observation-table.ts';

/** The age of metrics: a time, or for sources without times a number of rows of the same server. */
export type Age = { readonly ms: number } | { readonly rows: number };

const AGE = /^(\d{1,9})(ms|s|rows)$/;

/** Parses `500ms`, `2s` or `10rows`; returns undefined for anything else. */
export function parseAge(text: string): Age | undefined {
  const [, number, unit] = AGE.exec(text) ?? [];
  if (number === undefined) return undefined;
  return unit === 'rows' ? { rows: Number(number) } : { ms: Number(number) * (unit === 's' ? 1000 : 1) };
}

/** The metrics of servers. Those of the request itself are never old. */
const OF_SERVER = METRICS.filter(({ of }) => of === 'load').map(({ column }) => column);

/**
 * Returns the table with the server metrics of each row replaced by those of the last row of that server that is at least this
 * old, or of its first row if no row is old enough. `inTime` are all rows, in the order of time.
 */
export function ageMetrics(table: ObservationTable, inTime: readonly number[], age: Age): ObservationTable {
  const aged = selectRows(
    table,
    Array.from({ length: table.count }, (_, row) => row),
  );
  const ofServers = Map.groupBy(inTime, (row) => `${table.run[row]} ${table.server[row]}`);
  for (const rows of ofServers.values())
    for (const [i, seen] of findSeen(table, rows, age).entries())
      for (const name of OF_SERVER) aged[name][rows[i]!] = table[name][seen]!;
  return aged;
}

/** Finds for each row of one server, in the order of time, the row whose metrics are known at its time. */
function findSeen(table: ObservationTable, rows: readonly number[], age: Age): number[] {
  if ('rows' in age) return rows.map((_, i) => rows[Math.max(0, i - age.rows)]!);
  let seen = 0;
  return rows.map((row, i) => {
    while (seen < i && table.atMs[rows[seen + 1]!]! <= table.atMs[row]! - age.ms) seen++;
    return rows[seen]!;
  });
}
