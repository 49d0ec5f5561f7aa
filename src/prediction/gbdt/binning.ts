/**
 * Values become bytes once, before training and before serving; from then on only bytes are compared.
 * All arithmetic on values is in 32-bit floats, so that what was trained is what is served.
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
  columns.forEach((column, feature) => {
    binColumn(binning.edges[feature]!, column, bins.subarray(feature * rowCount, (feature + 1) * rowCount));
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
  const sorted = Float32Array.from(column)
    .filter((value) => !Number.isNaN(value))
    .sort();
  const { values, counts } = countDistinct(sorted);
  const edges: number[] = [];
  // Greedy: a bin is closed once it holds its share of the rows that are left, so that one frequent value
  // (a queue that is mostly empty) does not use up the cut points of the others.
  let rowsLeft = sorted.length;
  let binsLeft = maxBins;
  let inBin = 0;
  for (let i = 0; i + 1 < values.length && binsLeft > 1; i++) {
    inBin += counts[i]!;
    const isRoomForAll = values.length - i <= binsLeft;
    if (!isRoomForAll && inBin < rowsLeft / binsLeft) continue;
    edges.push(cutBetween(values[i]!, values[i + 1]!));
    rowsLeft -= inBin;
    binsLeft -= 1;
    inBin = 0;
  }
  return Float32Array.from(edges);
}

function countDistinct(sorted: Float32Array): { values: number[]; counts: number[] } {
  const values: number[] = [];
  const counts: number[] = [];
  for (const value of sorted) {
    if (values.length > 0 && values[values.length - 1] === value) counts[counts.length - 1]! += 1;
    else {
      values.push(value);
      counts.push(1);
    }
  }
  return { values, counts };
}

/** A cut with `lower <= cut < upper`. The middle can round up to `upper`, or overflow: then `lower` itself is the cut. */
function cutBetween(lower: number, upper: number): number {
  const middle = Math.fround(lower / 2 + upper / 2);
  return middle >= lower && middle < upper ? middle : lower;
}
