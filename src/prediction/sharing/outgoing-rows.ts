/** Queues the rows that this process appends to the log. Each is appended once, even after a retry. */
import type { Store } from '../../database/store.ts';
import type { World } from '../../world.ts';
import { encodeChunk, type SharedChunk } from './entries-codec.ts';
import { appendToLog } from './shared-log-store.ts';

export interface OutgoingRows {
  /** The name of this process in the log. */
  readonly process: string;
  readonly count: number;
  add(chunk: SharedChunk): void;
  appendFirst(): Promise<void>;
}

interface OutgoingRow {
  readonly number: number;
  readonly content: Uint8Array;
}

export function createOutgoingRows(store: Store, world: World): OutgoingRows {
  const process = world.uuid();
  const rows: OutgoingRow[] = [];
  let nextNumber = 1;
  return {
    process,
    get count() {
      return rows.length;
    },
    add: (chunk) => void rows.push({ number: nextNumber++, content: encodeChunk(chunk) }),
    async appendFirst() {
      const [row] = rows;
      if (row === undefined) return;
      // The row is kept until it is certainly stored. A retry after a lost answer does not append it twice.
      await appendToLog(store, { process, nowMs: world.nowMs(), ...row });
      rows.shift();
    },
  };
}
