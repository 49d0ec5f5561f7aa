/** The rows that this process appends to the log: each is appended once, in their order, however often that is tried. */
import type { Store } from '../../database/store.ts';
import type { World } from '../../world.ts';
import { encodeChunk, type SharedChunk } from './entries-codec.ts';
import { appendToLog } from './shared-log-store.ts';

export interface OwnRows {
  /** The name of this process in the log. */
  readonly process: string;
  readonly count: number;
  add(chunk: SharedChunk): void;
  appendFirst(): Promise<void>;
}

interface OwnRow {
  readonly number: number;
  readonly content: Uint8Array;
}

export function createOwnRows(store: Store, world: World): OwnRows {
  const process = world.uuid();
  const rows: OwnRow[] = [];
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
      // It stays until it was stored for certain: after a lost answer, the same row is not appended twice.
      await appendToLog(store, { process, nowMs: world.nowMs(), ...row });
      rows.shift();
    },
  };
}
