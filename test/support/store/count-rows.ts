/** Counts the rows that are read from a store, in all and in one turn of the event loop. */
import type { Store } from '../../../src/database/store.ts';

export interface RowCounts {
  readonly store: Store;
  rows: number;
  /** The most in one turn. */
  mostInTurn: number;
}

export function countRows(store: Store): RowCounts {
  let inTurn = 0;
  const counts: RowCounts = {
    store: {
      ...store,
      async read(statement, parameters) {
        const rows = await store.read(statement, parameters);
        if (inTurn === 0)
          setImmediate(() => {
            inTurn = 0;
          });
        inTurn += rows.length;
        counts.rows += rows.length;
        counts.mostInTurn = Math.max(counts.mostInTurn, inTurn);
        return rows;
      },
    },
    rows: 0,
    mostInTurn: 0,
  };
  return counts;
}
