/** Turns feature values into bytes by cut points, the same in training and serving. */
import { createColumnBinner } from './bin-column-wasm.ts';
import { createKeys, decodeKeys, sortKeys } from './float-keys.ts';

/**
 * Values become bytes once, before training and before serving; from then on only bytes are compared. All arithmetic on values is
 * in 32-bit floats, so that training and serving give the same bins.
 */

export const MAX_BINS = 255;

/** Where the values of every feature are cut. */
export interface Binning {
  /** Rising cut points of each feature. The bin of a value is the number of cut points below it; NaN is in bin 0. */
  readonly edges: readonly Float32Array[];
}

/** Rows as bytes, one column after the other: the bin of row `i` in feature `f` is `bins[f * rowCount + i]`. */
export interface BinnedRows {
  readonly binning: Binning;
  readonly rowCount: number;
  readonly bins: Uint8Array;
}

export interface BinningOptions {
  /** 2 … 255. */
  readonly maxBins?: number;
}

/** Cuts each column at its quantiles: with few distinct values, each has a bin of its own. */
export function fitBinning(columns: readonly Float32Array[], options: BinningOptions = {}): Binning {
  const maxBins = options.maxBins ?? MAX_BINS;
  if (!Number.isInteger(maxBins) || maxBins < 2 || maxBins > MAX_BINS) {
    throw new RangeError(`Cannot fit the binning: maxBins must be 2 … ${MAX_BINS}, got ${maxBins}`);
  }
  return { edges: columns.map((column) => fitEdges(column, maxBins)) };
}

export function binRows(binning: Binning, columns: readonly Float32Array[]): BinnedRows {
  if (columns.length !== binning.edges.length) {
    throw new RangeError(`Cannot bin the rows: expected ${binning.edges.length} columns, got ${columns.length}`);
  }
  const rowCount = columns[0]?.length ?? 0;
  if (columns.some((column) => column.length !== rowCount)) {
    throw new RangeError('Cannot bin the rows: the columns differ in length');
  }
  const bins = new Uint8Array(columns.length * rowCount);
  const bin = createColumnBinner() ?? binColumn;
  columns.forEach((column, feature) => {
    bin(binning.edges[feature]!, column, bins.subarray(feature * rowCount, (feature + 1) * rowCount));
  });
  return { binning, rowCount, bins };
}

export function binColumn(edges: Float32Array, values: Float32Array, bins: Uint8Array): void {
  for (let i = 0; i < values.length; i++) bins[i] = findBin(edges, values[i]!);
}

/** The number of cut points below the value, by binary search. */
export function findBin(edges: Float32Array, value: number): number {
  let low = 0;
  let high = edges.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (edges[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function countBins(binning: Binning, feature: number): number {
  return binning.edges[feature]!.length + 1;
}

function fitEdges(column: Float32Array, maxBins: number): Float32Array {
  const sorted = sortNumbers(column);
  const edges: number[] = [];
  let valuesLeft = countDistinct(sorted);
  let binsLeft = maxBins;
  let binStart = 0;
  for (let i = 0; i + 1 < sorted.length && binsLeft > 1; i++) {
    if (sorted[i] === sorted[i + 1]) continue;
    // A bin is closed once it holds its share of the rows that are left, so that one frequent value (a queue that is
    // mostly empty) does not use up the cut points of the others.
    const isFull = valuesLeft <= binsLeft || i + 1 - binStart >= (sorted.length - binStart) / binsLeft;
    valuesLeft -= 1;
    if (!isFull) continue;
    edges.push(cutBetween(sorted[i]!, sorted[i + 1]!));
    binStart = i + 1;
    binsLeft -= 1;
  }
  return Float32Array.from(edges);
}

/** Sorts numbers in rising order, without NaN, which sorts to either end. */
function sortNumbers(column: Float32Array): Float32Array {
  const sorted = decodeKeys(sortKeys(createKeys(column)));
  let [start, end] = [0, sorted.length];
  while (start < end && Number.isNaN(sorted[start])) start += 1;
  while (end > start && Number.isNaN(sorted[end - 1])) end -= 1;
  return sorted.subarray(start, end);
}

function countDistinct(sorted: Float32Array): number {
  let count = 0;
  for (let i = 0; i < sorted.length; i++) if (i === 0 || sorted[i] !== sorted[i - 1]) count += 1;
  return count;
}

/** A cut with `lower <= cut < upper`. The middle can round up to `upper`, or overflow: then `lower` itself is the cut. */
function cutBetween(lower: number, upper: number): number {
  const middle = Math.fround(lower / 2 + upper / 2);
  return middle >= lower && middle < upper ? middle : lower;
}
