/** Chooses the evaluator of forests: the WebAssembly kernel, or the plain fallback where SIMD is missing. */
import { findBin } from './binning.ts';
import { createWasmEvaluator } from './evaluate-wasm.ts';
import type { Evaluator } from './evaluator.ts';
import { type Forest, LEAVES, MAX_DEPTH } from './tree.ts';

export interface EvaluatorOptions {
  /** `wasm` by default, if the machine supports it. */
  readonly kernel?: 'wasm' | 'plain';
  readonly capacity?: number;
}

export function createEvaluator(forests: readonly Forest[], options: EvaluatorOptions = {}): Evaluator {
  const [first] = forests;
  if (first === undefined) throw new RangeError('Cannot create the evaluator: there is no forest');
  if (forests.some((forest) => forest.binning !== first.binning)) {
    throw new RangeError('Cannot create the evaluator: the forests must share one binning');
  }
  const capacity = options.capacity ?? 64;
  const wasm = options.kernel === 'plain' ? undefined : createWasmEvaluator(forests, capacity);
  return wasm ?? createPlainEvaluator(forests, first.binning.edges, capacity);
}

function createPlainEvaluator(forests: readonly Forest[], edges: readonly Float32Array[], capacity: number): Evaluator {
  const values = new Float32Array(edges.length * capacity);
  const bins = new Uint8Array(values.length);
  const sums = new Int32Array(capacity);
  const outputs = forests.map(() => new Float64Array(capacity));
  return {
    kernel: 'plain',
    capacity,
    values,
    outputs,
    evaluate(count) {
      binValues(edges, values, bins, count);
      forests.forEach((forest, f) => {
        sumTrees(forest, bins, count, sums);
        const output = outputs[f]!;
        for (let i = 0; i < count; i++) output[i] = forest.base + sums[i]! * forest.leafScale;
      });
    },
  };
}

function binValues(edges: readonly Float32Array[], values: Float32Array, bins: Uint8Array, count: number): void {
  const capacity = values.length / edges.length;
  for (let feature = 0; feature < edges.length; feature++) {
    const start = feature * capacity;
    const cuts = edges[feature]!;
    for (let i = start; i < start + count; i++) bins[i] = findBin(cuts, values[i]!);
  }
}

/** Goes tree by tree, so that the levels of a tree stay in registers for all rows. */
function sumTrees(forest: Forest, bins: Uint8Array, count: number, sums: Int32Array): void {
  const { features, thresholds, leaves, treeCount } = forest;
  const capacity = sums.length;
  sums.fill(0, 0, count);
  for (let tree = 0; tree < treeCount; tree++) {
    const level = tree * MAX_DEPTH;
    const f0 = features[level]! * capacity;
    const f1 = features[level + 1]! * capacity;
    const f2 = features[level + 2]! * capacity;
    const f3 = features[level + 3]! * capacity;
    const f4 = features[level + 4]! * capacity;
    const f5 = features[level + 5]! * capacity;
    const t0 = thresholds[level]!;
    const t1 = thresholds[level + 1]!;
    const t2 = thresholds[level + 2]!;
    const t3 = thresholds[level + 3]!;
    const t4 = thresholds[level + 4]!;
    const t5 = thresholds[level + 5]!;
    const table = tree * LEAVES;
    for (let i = 0; i < count; i++) {
      // The sign bit of threshold − bin is the digit: no branch to mispredict.
      const leaf =
        (((t0 - bins[f0 + i]!) >>> 31) << 5) |
        (((t1 - bins[f1 + i]!) >>> 31) << 4) |
        (((t2 - bins[f2 + i]!) >>> 31) << 3) |
        (((t3 - bins[f3 + i]!) >>> 31) << 2) |
        (((t4 - bins[f4 + i]!) >>> 31) << 1) |
        ((t5 - bins[f5 + i]!) >>> 31);
      sums[i]! += leaves[table + leaf]!;
    }
  }
}
