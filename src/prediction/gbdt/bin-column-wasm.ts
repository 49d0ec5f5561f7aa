/** Bins whole columns of values with the WebAssembly kernel. */
import { findKernelModule, planMemory } from './kernel.ts';

/** How many values the kernel bins in one call. */

const PIECE = 8192;

export const EDGE_TABLE_FLOATS = 16 + 256;

/** Writes 16 coarse cut points, each the last of a block of 16, and then all cut points. The rest is infinity, which is below no value. */
export function writeEdgeTable(edges: Float32Array, table: Float32Array): void {
  table.fill(Number.POSITIVE_INFINITY);
  table.set(edges, 16);
  for (let block = 0; block < 16; block++) table[block] = table[16 + block * 16 + 15]!;
}

/** The kernel's search of bins for whole columns. */
export interface BinExports {
  bin(
    edges: number,
    values: number,
    bins: number,
    features: number,
    capacity: number,
    count: number,
    flip: number,
  ): void;
}

export type BinColumn = (edges: Float32Array, values: Float32Array, bins: Uint8Array) => void;

/** Undefined where the machine cannot run the kernel. */
export function createColumnBinner(): BinColumn | undefined {
  const module = findKernelModule('evaluate');
  if (module === undefined) return undefined;
  const plan = planMemory();
  const tableAt = plan.reserve(EDGE_TABLE_FLOATS * 4);
  const valuesAt = plan.reserve(PIECE * 4);
  const binsAt = plan.reserve(PIECE);
  const memory = plan.create();
  const kernel = new WebAssembly.Instance(module, { env: { memory } }).exports as unknown as BinExports;
  const table = new Float32Array(memory.buffer, tableAt, EDGE_TABLE_FLOATS);
  const pieceValues = new Float32Array(memory.buffer, valuesAt, PIECE);
  const pieceBins = new Uint8Array(memory.buffer, binsAt, PIECE);
  return (edges, values, bins) => {
    writeEdgeTable(edges, table);
    for (let start = 0; start < values.length; start += PIECE) {
      const count = Math.min(PIECE, values.length - start);
      pieceValues.set(values.subarray(start, start + count));
      kernel.bin(tableAt, valuesAt, binsAt, 1, PIECE, count, 0);
      bins.set(pieceBins.subarray(0, count), start);
    }
  };
}
