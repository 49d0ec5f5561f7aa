/** Encodes a forest of any shape as bytes, and decodes it. */
import { copyNative, toLittleEndian } from '../native-arrays.ts';
import { checkForest, type GeneralForest } from './general-tree.ts';

/**
 * A forest of any shape as bytes, little-endian: a header, then its arrays, one after the other. A caller that stores the bytes
 * must protect them by a checksum of its own; the decoder still refuses nodes that point nowhere.
 */

const LINKS: readonly GeneralForest['link'][] = ['identity', 'exp'];
const PRECISIONS: readonly GeneralForest['precision'][] = ['single', 'double'];
/** Features, link, precision, trees, nodes and an unused word, 32 bits each. */
const HEAD_WORDS = 6;
const HEAD_BYTES = HEAD_WORDS * 4 + 8;
/** Feature, left, right, missing as 32 bits each; threshold or leaf, cover as 64. */
const NODE_BYTES = 32;

export function encodeGeneralForest(forest: GeneralForest): Uint8Array {
  const { featureCount, roots, features } = forest;
  const head = [featureCount, LINKS.indexOf(forest.link), PRECISIONS.indexOf(forest.precision)];
  return Buffer.concat([
    toLittleEndian(Int32Array.of(...head, roots.length, features.length, 0)),
    toLittleEndian(Float64Array.of(forest.base)),
    ...[roots, features, forest.left, forest.right, Int32Array.from(forest.missing)].map(toLittleEndian),
    ...[forest.thresholds, forest.covers].map(toLittleEndian),
  ]);
}

/** Throws a RangeError if the bytes are not such a forest. */
export function decodeGeneralForest(bytes: Uint8Array): GeneralForest {
  if (bytes.length < HEAD_BYTES) throw refuse('it ends too early');
  let at = 0;
  const take = (count: number, size: number): ArrayBuffer => {
    at += count * size;
    return copyNative(bytes, at - count * size, count, size);
  };
  const ints = (count: number) => new Int32Array(take(count, 4));
  const doubles = (count: number) => new Float64Array(take(count, 8));
  const [featureCount, linkAt, precisionAt, treeCount, nodeCount] = ints(HEAD_WORDS);
  const link = LINKS[linkAt!];
  const precision = PRECISIONS[precisionAt!];
  if (link === undefined || precision === undefined) throw refuse('its kind is unknown');
  if (bytes.length !== HEAD_BYTES + 4 * treeCount! + NODE_BYTES * nodeCount!) throw refuse('its length is wrong');
  const forest: GeneralForest = {
    featureCount: featureCount!,
    link,
    precision,
    base: doubles(1)[0]!,
    roots: ints(treeCount!),
    features: ints(nodeCount!),
    left: ints(nodeCount!),
    right: ints(nodeCount!),
    missing: Uint8Array.from(ints(nodeCount!)),
    thresholds: doubles(nodeCount!),
    covers: doubles(nodeCount!),
  };
  checkForest(forest);
  return forest;
}

function refuse(reason: string): RangeError {
  return new RangeError(`Cannot read the forest: ${reason}`);
}
