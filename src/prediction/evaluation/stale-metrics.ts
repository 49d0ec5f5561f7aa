/** Computes what a caller would have sent whose metrics of servers are old. */
import { METRICS } from '../schema/input-fields.ts';
import { type ObservationTable, selectRows } from '../schema/observation-table.ts';

/** How old the metrics are: a time, or for sources without times a number of rows of the same server. */
export type Age = { readonly ms: number } | { readonly rows: number };

const AGE = /^(\d{1,9})(ms|s|rows)$/;

/** `500ms`, `2s` or `10rows`; undefined for anything else. */
export function parseAge(text: string): Age | undefined {
  const [, number, unit] = AGE.exec(text) ?? [];
  if (number === undefined) return undefined;
  return unit === 'rows' ? { rows: Number(number) } : { ms: Number(number) * (unit === 's' ? 1000 : 1) };
}

/** The other metrics are of the request itself, and are never old. */
const OF_SERVER = METRICS.filter(({ of }) => of === 'load').map(({ column }) => column);

/**
 * The same table with what each row says of its server replaced by what the last row of that server said which is at
 * least so old; by its first row when no row is old enough. `inTime` are all its rows, in the order of time.
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

/** Finds, for each of the rows of one server in the order of time, the row whose metrics are known at its time. */
function findSeen(table: ObservationTable, rows: readonly number[], age: Age): number[] {
  if ('rows' in age) return rows.map((_, i) => rows[Math.max(0, i - age.rows)]!);
  let seen = 0;
  return rows.map((row, i) => {
    while (seen < i && table.atMs[rows[seen + 1]!]! <= table.atMs[row]! - age.ms) seen++;
    return rows[seen]!;
  });
}
