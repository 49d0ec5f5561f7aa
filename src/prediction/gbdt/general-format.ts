import { createGeneralForest, type GeneralForest, type GeneralNode } from './general-tree.ts';

/**
 * A forest of any shape as bytes, little-endian: what it is, the size of each tree, then its nodes. Whoever keeps the
 * bytes knows by its own checksum that they are whole; a reader still refuses nodes that point nowhere.
 */

const LINKS: readonly GeneralForest['link'][] = ['identity', 'exp'];
const PRECISIONS: readonly GeneralForest['precision'][] = ['single', 'double'];
/** Features, link, precision, trees as 32 bits each; base as 64. */
const HEAD_BYTES = 24;
/** Feature, left, right, missing as 32 bits each; threshold or leaf, cover as 64. */
const NODE_BYTES = 32;

export function encodeGeneralForest(forest: GeneralForest): Uint8Array {
  const trees = forest.roots.length;
  const view = new DataView(new ArrayBuffer(HEAD_BYTES + 4 * trees + NODE_BYTES * forest.features.length));
  view.setInt32(0, forest.featureCount, true);
  view.setInt32(4, LINKS.indexOf(forest.link), true);
  view.setInt32(8, PRECISIONS.indexOf(forest.precision), true);
  view.setInt32(12, trees, true);
  view.setFloat64(16, forest.base, true);
  let at = HEAD_BYTES + 4 * trees;
  for (let tree = 0; tree < trees; tree++) {
    const [start, end] = [forest.roots[tree]!, forest.roots[tree + 1] ?? forest.features.length];
    view.setInt32(HEAD_BYTES + 4 * tree, end - start, true);
    for (let node = start; node < end; node++, at += NODE_BYTES) writeNode(view, at, { forest, node, start });
  }
  return new Uint8Array(view.buffer);
}

function writeNode(
  view: DataView,
  at: number,
  { forest, node, start }: { readonly forest: GeneralForest; readonly node: number; readonly start: number },
): void {
  view.setInt32(at, forest.features[node]!, true);
  view.setInt32(at + 4, forest.left[node]! - start, true);
  view.setInt32(at + 8, forest.right[node]! - start, true);
  view.setInt32(at + 12, forest.missing[node]!, true);
  view.setFloat64(at + 16, forest.thresholds[node]!, true);
  view.setFloat64(at + 24, forest.covers[node]!, true);
}

/** Throws a RangeError when this is no such forest. */
export function decodeGeneralForest(bytes: Uint8Array): GeneralForest {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const link = LINKS[view.getInt32(4, true)];
  const precision = PRECISIONS[view.getInt32(8, true)];
  if (link === undefined || precision === undefined)
    throw new RangeError('Cannot read the forest: its kind is unknown');
  const treeCount = view.getInt32(12, true);
  let at = HEAD_BYTES + 4 * treeCount;
  const trees = Array.from({ length: treeCount }, (_, tree) =>
    Array.from({ length: view.getInt32(HEAD_BYTES + 4 * tree, true) }, () => {
      const node = readNode(view, at);
      at += NODE_BYTES;
      return node;
    }),
  );
  if (at !== bytes.length) throw new RangeError('Cannot read the forest: there is more in it than there should be');
  return createGeneralForest({
    featureCount: view.getInt32(0, true),
    base: view.getFloat64(16, true),
    link,
    precision,
    trees,
  });
}

function readNode(view: DataView, at: number): GeneralNode {
  const feature = view.getInt32(at, true);
  const threshold = view.getFloat64(at + 16, true);
  const cover = view.getFloat64(at + 24, true);
  if (feature < 0) return { leaf: threshold, cover };
  return {
    feature,
    threshold,
    cover,
    left: view.getInt32(at + 4, true),
    right: view.getInt32(at + 8, true),
    missing: view.getInt32(at + 12, true),
  };
}
