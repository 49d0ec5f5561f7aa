/** Sums forests over rows with the WebAssembly kernel, 16 rows at a time. */
import { type BinExports, EDGE_TABLE_FLOATS, writeEdgeTable } from './bin-column-wasm.ts';
import type { Evaluator } from './evaluator.ts';
import { findKernelModule, planMemory } from './kernel.ts';
import { type Forest, LEAVES, MAX_DEPTH, NEVER } from './tree.ts';

/** 16 rows a step: rows are compared as the lanes of one register, leaves looked up by byte shuffles. */
const LANES = 16;
/** Signed comparisons are one instruction, unsigned ones two: bytes are shifted by half their range. */
const SIGN_BIT = 0x80;
const TREE_BYTES = 32 + 2 * LEAVES;

interface EvaluateExports extends BinExports {
  evaluate(
    trees: number,
    treeCount: number,
    bins: number,
    count: number,
    sums: number,
    outputs: number,
    base: number,
    scale: number,
  ): void;
}

/** Undefined where the machine cannot run the kernel. */
export function createWasmEvaluator(forests: readonly Forest[], capacity: number): Evaluator | undefined {
  const module = findKernelModule('evaluate');
  if (module === undefined) return undefined;
  const edges = forests[0]!.binning.edges;
  const stride = Math.ceil(capacity / LANES) * LANES;
  const plan = planMemory();
  const edgesAt = plan.reserve(edges.length * EDGE_TABLE_FLOATS * 4);
  const valuesAt = plan.reserve(edges.length * stride * 4);
  const binsAt = plan.reserve(edges.length * stride);
  const sumsAt = plan.reserve(LANES * 4);
  const parts = forests.map((forest) => ({
    forest,
    treesAt: plan.reserve(forest.treeCount * TREE_BYTES),
    outputAt: plan.reserve(stride * 8),
  }));
  const memory = plan.create();
  writeEdges(edges, new Float32Array(memory.buffer, edgesAt, edges.length * EDGE_TABLE_FLOATS));
  for (const { forest, treesAt } of parts) writeTrees(forest, stride, memory.buffer, treesAt);
  const kernel = new WebAssembly.Instance(module, { env: { memory } }).exports as unknown as EvaluateExports;
  const asked = listAskedRuns(forests, edges.length);
  return {
    kernel: 'wasm',
    capacity: stride,
    values: new Float32Array(memory.buffer, valuesAt, edges.length * stride),
    outputs: parts.map(({ outputAt }) => new Float64Array(memory.buffer, outputAt, stride)),
    evaluate(count) {
      for (const { from, features } of asked) {
        const edgeTable = edgesAt + from * EDGE_TABLE_FLOATS * 4;
        kernel.bin(edgeTable, valuesAt + from * stride * 4, binsAt + from * stride, features, stride, count, SIGN_BIT);
      }
      for (const { forest, treesAt, outputAt } of parts) {
        kernel.evaluate(treesAt, forest.treeCount, binsAt, count, sumsAt, outputAt, forest.base, forest.leafScale);
      }
    },
  };
}

interface FeatureRun {
  readonly from: number;
  readonly features: number;
}

/**
 * Lists runs of adjacent features that some tree splits on. Others need no bins: many pools never report utilizations, or have
 * equal servers.
 */
function listAskedRuns(forests: readonly Forest[], featureCount: number): FeatureRun[] {
  const asked = new Set(forests.flatMap(listAskedFeatures));
  const runs: FeatureRun[] = [];
  for (let feature = 0; feature < featureCount; feature++) {
    if (!asked.has(feature)) continue;
    const last = runs.at(-1);
    if (last !== undefined && last.from + last.features === feature)
      runs[runs.length - 1] = { ...last, features: last.features + 1 };
    else runs.push({ from: feature, features: 1 });
  }
  return runs;
}

function listAskedFeatures({ features, thresholds, treeCount }: Forest): number[] {
  const levels = Array.from(features.subarray(0, treeCount * MAX_DEPTH));
  return levels.filter((_, level) => thresholds[level] !== NEVER);
}

function writeEdges(edges: readonly Float32Array[], tables: Float32Array): void {
  edges.forEach((cuts, feature) => {
    const start = feature * EDGE_TABLE_FLOATS;
    writeEdgeTable(cuts, tables.subarray(start, start + EDGE_TABLE_FLOATS));
  });
}

/** Plain byte arrays: this runs between two calls, often before V8 has compiled it. */
function writeTrees(forest: Forest, stride: number, buffer: ArrayBuffer, start: number): void {
  const { features, thresholds } = forest;
  const bytes = new Uint8Array(buffer, start, forest.treeCount * TREE_BYTES);
  const words = new Uint32Array(buffer, start, bytes.length / 4);
  const leaves = new Uint8Array(forest.leaves.buffer, forest.leaves.byteOffset, forest.leaves.byteLength);
  for (let tree = 0; tree < forest.treeCount; tree++) {
    const at = tree * TREE_BYTES;
    for (let level = 0; level < MAX_DEPTH; level++) {
      words[at / 4 + level] = features[tree * MAX_DEPTH + level]! * stride;
      bytes[at + 24 + level] = thresholds[tree * MAX_DEPTH + level]! ^ SIGN_BIT;
    }
    splitLeaves(leaves, tree * LEAVES * 2, bytes, at + 32);
  }
}

/** The low bytes of all leaves, then the high ones. */
function splitLeaves(leaves: Uint8Array, from: number, bytes: Uint8Array, to: number): void {
  for (let leaf = 0; leaf < LEAVES; leaf++) {
    bytes[to + leaf] = leaves[from + 2 * leaf]!;
    bytes[to + LEAVES + leaf] = leaves[from + 2 * leaf + 1]!;
  }
}
