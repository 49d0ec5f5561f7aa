/** Grows symmetric trees with the WebAssembly kernel: the same trees as `grow-tree.ts`, to the last threshold. */
import type { BinnedRows } from '../binning.ts';
import { findKernelModule, planMemory } from '../kernel.ts';
import { MAX_DEPTH } from '../tree.ts';
import type { TreeGrower } from './grow-tree.ts';
import { createLayout } from './histogram.ts';
import type { Split, SplitRule } from './split.ts';

/** The functions of the kernel (`../assembly/train.ts`). */

interface TrainExports {
  pack(
    gradients: number,
    weights: number,
    rowCount: number,
    shift: bigint,
    packed: number,
    sourceWords: number,
    words: number,
    wordCount: number,
    stride: number,
  ): number;
  accumulate(features: number, words: number, packed: number, count: number): void;
  flush(features: number, binCounts: number, histogram: number): void;
  subtract(parent: number, child: number, sibling: number, bins: number): void;
  scan(
    histogram: number,
    leafStride: number,
    leafCount: number,
    binCount: number,
    shift: bigint,
    l2: number,
    minChildWeight: number,
    sign: number,
    gains: number,
  ): void;
  partition(
    packed: number,
    words: number,
    targetPacked: number,
    targetWords: number,
    count: number,
    wordCount: number,
    stride: number,
    tested: number,
    threshold: number,
  ): number;
  assign(column: number, threshold: number, leaves: number, rowCount: number): void;
}

/** A feature that can split, and where its bins lie: in which word of a row, and in each histogram. */
interface UsedFeature {
  readonly feature: number;
  readonly binCount: number;
  readonly word: number;
  /** Which byte of the word. */
  readonly position: number;
  readonly columnAt: number;
  readonly offsetBytes: number;
}

const FEATURES_PER_WORD = 8;
const SCRATCH_BYTES = FEATURES_PER_WORD * 256 * 8;

/** One of two copies of the rows in the order of their leaves. */
interface WorkArea {
  readonly packedAt: number;
  readonly wordsAt: number;
}

interface Layout {
  readonly rowCount: number;
  /** Bytes between a word of a row and its next word. */
  readonly stride: number;
  readonly features: readonly UsedFeature[];
  readonly wordCount: number;
  /** Entries of one histogram, even. */
  readonly histogramBins: number;
  readonly gradientsAt: number;
  readonly weightsAt: number;
  readonly leavesAt: number;
  readonly sourceWordsAt: number;
  readonly binCountsAt: number;
  readonly gainsAt: number;
  readonly areas: readonly [WorkArea, WorkArea];
  readonly histogramsAt: readonly [number, number];
}

/**
 * The sum of all quantised weights must fit into `weightBits` bits. Undefined if the machine cannot run the kernel, or there are
 * too many rows.
 */
export function createWasmGrower(rows: BinnedRows, weightBits: number): TreeGrower | undefined {
  const module = findKernelModule('train');
  if (module === undefined) return undefined;
  const plan = planMemory();
  const layout = planLayout(rows, plan.reserve);
  if (!plan.fits()) return undefined;
  const memory = plan.create();
  const kernel = new WebAssembly.Instance(module, { env: { memory } }).exports as unknown as TrainExports;
  writeRows(rows, layout, memory.buffer);
  const gradients = new Int32Array(memory.buffer, layout.gradientsAt, rows.rowCount);
  const weights = new Int32Array(memory.buffer, layout.weightsAt, rows.rowCount);
  const gains = new Float64Array(memory.buffer, layout.gainsAt, 256);
  const leafOfRow = new Uint8Array(memory.buffer, layout.leavesAt, rows.rowCount);
  return {
    gradients,
    weights,
    leafOfRow,
    grow(depth, rule) {
      const splits = growLevels({ kernel, layout, gains, shift: BigInt(weightBits), rule }, depth);
      leafOfRow.fill(0);
      for (const split of splits) {
        kernel.assign(split.used.columnAt, split.threshold, layout.leavesAt, rows.rowCount);
      }
      return {
        features: splits.map((split) => split.feature),
        thresholds: splits.map((split) => split.threshold),
      };
    },
  };
}

function planLayout(rows: BinnedRows, reserve: (bytes: number) => number): Layout {
  // The scratch comes first: the kernel knows its address.
  reserve(SCRATCH_BYTES);
  const { rowCount } = rows;
  const columnBytes = Math.ceil(rowCount / 16) * 16;
  const histogram = createLayout(rows.binning);
  const features: UsedFeature[] = [];
  histogram.binCounts.forEach((binCount, feature) => {
    if (binCount === 0) return;
    const position = features.length % FEATURES_PER_WORD;
    features.push({
      feature,
      binCount,
      word: Math.floor(features.length / FEATURES_PER_WORD),
      position,
      columnAt: reserve(columnBytes),
      offsetBytes: histogram.offsets[feature]! * 8,
    });
  });
  const wordCount = Math.ceil(features.length / FEATURES_PER_WORD);
  const stride = Math.ceil((rowCount + 1) / 2) * 16;
  const histogramBins = Math.ceil(histogram.totalBins / 2) * 2;
  const reserveArea = (): WorkArea => ({ packedAt: reserve(stride), wordsAt: reserve(stride * wordCount) });
  return {
    rowCount,
    stride,
    features,
    wordCount,
    histogramBins,
    gradientsAt: reserve(rowCount * 4),
    weightsAt: reserve(rowCount * 4),
    leavesAt: reserve(columnBytes),
    sourceWordsAt: reserve(stride * wordCount),
    binCountsAt: reserve(features.length * 4),
    gainsAt: reserve(256 * 8),
    areas: [reserveArea(), reserveArea()],
    histogramsAt: [0, 1].map(() => reserve((histogramBins * 8) << (MAX_DEPTH - 1))) as unknown as [number, number],
  };
}

function writeRows(rows: BinnedRows, layout: Layout, buffer: ArrayBuffer): void {
  const words = new Uint8Array(buffer, layout.sourceWordsAt, layout.stride * layout.wordCount);
  const binCounts = new Uint32Array(buffer, layout.binCountsAt, layout.features.length);
  layout.features.forEach(({ feature, binCount, word, position, columnAt }, i) => {
    binCounts[i] = binCount;
    const column = rows.bins.subarray(feature * rows.rowCount, (feature + 1) * rows.rowCount);
    new Uint8Array(buffer, columnAt, rows.rowCount).set(column);
    const first = word * layout.stride + position;
    for (let row = 0; row < rows.rowCount; row++) words[first + row * 8] = column[row]!;
  });
}

interface Growth {
  readonly kernel: TrainExports;
  readonly layout: Layout;
  readonly gains: Float64Array;
  readonly shift: bigint;
  readonly rule: SplitRule;
}

interface UsedSplit extends Split {
  readonly used: UsedFeature;
}

function growLevels(growth: Growth, depth: number): UsedSplit[] {
  const { layout } = growth;
  const splits: UsedSplit[] = [];
  let [area, other] = layout.areas;
  let [histograms, others] = layout.histogramsAt;
  let starts = startPartition(growth, area);
  sumRows(growth, area, { start: 0, end: starts[1]! }, histograms);
  for (let level = 0; level < depth; level++) {
    const split = findBestSplit(growth, histograms, 1 << level);
    if (split === undefined) break;
    splits.push(split);
    if (level + 1 === depth) break;
    starts = splitPartition(growth, { from: area, to: other, starts }, split);
    [area, other] = [other, area];
    buildChildren(growth, { area, starts }, { parentsAt: histograms, childrenAt: others });
    [histograms, others] = [others, histograms];
  }
  return splits;
}

/** Packs the rows that take part; returns the start and the end of the only leaf. */
function startPartition({ kernel, layout, shift }: Growth, area: WorkArea): number[] {
  const { gradientsAt, weightsAt, rowCount, sourceWordsAt, wordCount, stride } = layout;
  const { packedAt, wordsAt } = area;
  return [0, kernel.pack(gradientsAt, weightsAt, rowCount, shift, packedAt, sourceWordsAt, wordsAt, wordCount, stride)];
}

interface Range {
  readonly start: number;
  readonly end: number;
}

function sumRows({ kernel, layout }: Growth, area: WorkArea, range: Range, histogramAt: number): void {
  for (let word = 0; word < layout.wordCount; word++) {
    const first = word * FEATURES_PER_WORD;
    const features = Math.min(FEATURES_PER_WORD, layout.features.length - first);
    const wordsAt = area.wordsAt + word * layout.stride + range.start * 8;
    kernel.accumulate(features, wordsAt, area.packedAt + range.start * 8, range.end - range.start);
    kernel.flush(features, layout.binCountsAt + first * 4, histogramAt + layout.features[first]!.offsetBytes);
  }
}

function findBestSplit(growth: Growth, histograms: number, leafCount: number): UsedSplit | undefined {
  const { kernel, layout, gains, shift, rule } = growth;
  let best: UsedSplit | undefined;
  for (const used of layout.features) {
    const { feature, binCount } = used;
    if (rule.allowed[feature] !== 1) continue;
    gains.fill(0);
    const sign = rule.monotone[feature]!;
    const at = histograms + used.offsetBytes;
    const leafStride = layout.histogramBins * 8;
    kernel.scan(at, leafStride, leafCount, binCount, shift, rule.l2, rule.minChildWeight, sign, layout.gainsAt);
    for (let threshold = 0; threshold + 1 < binCount; threshold++) {
      const gain = gains[threshold]!;
      if (gain > (best?.gain ?? 0)) best = { feature, threshold, gain, used };
    }
  }
  return best;
}

interface Move {
  readonly from: WorkArea;
  readonly to: WorkArea;
  readonly starts: readonly number[];
}

function splitPartition({ kernel, layout }: Growth, { from, to, starts }: Move, split: UsedSplit): number[] {
  const next = [0];
  const tested = from.wordsAt + split.used.word * layout.stride + split.used.position;
  for (let leaf = 0; leaf + 1 < starts.length; leaf++) {
    const start = starts[leaf]!;
    const count = starts[leaf + 1]! - start;
    const left = kernel.partition(
      from.packedAt + start * 8,
      from.wordsAt + start * 8,
      to.packedAt + start * 8,
      to.wordsAt + start * 8,
      count,
      layout.wordCount,
      layout.stride,
      tested + start * 8,
      split.threshold,
    );
    next.push(start + left, start + count);
  }
  return next;
}

/** Sums only the smaller child of each pair; its sibling is the parent minus this child. */
function buildChildren(
  growth: Growth,
  rows: { readonly area: WorkArea; readonly starts: readonly number[] },
  at: { readonly parentsAt: number; readonly childrenAt: number },
): void {
  const { kernel, layout } = growth;
  const bytes = layout.histogramBins * 8;
  for (let pair = 0; 2 * pair + 2 < rows.starts.length; pair++) {
    const [start, middle, end] = rows.starts.slice(2 * pair, 2 * pair + 3) as [number, number, number];
    const isLeftSmaller = middle - start <= end - middle;
    const smaller = 2 * pair + (isLeftSmaller ? 0 : 1);
    const child = at.childrenAt + smaller * bytes;
    const sibling = at.childrenAt + (smaller ^ 1) * bytes;
    sumRows(growth, rows.area, isLeftSmaller ? { start, end: middle } : { start: middle, end }, child);
    kernel.subtract(at.parentsAt + pair * bytes, child, sibling, layout.histogramBins);
  }
}
