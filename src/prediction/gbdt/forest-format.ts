/** Encodes forests as bytes with a checksum, and decodes them; refuses damaged bytes and unknown formats. */
import { createHash } from 'node:crypto';
import type { Binning } from './binning.ts';
import { MAX_BINS } from './binning.ts';
import { copyNative, toLittleEndian } from './native-arrays.ts';
import { type Forest, LEAVES, MAX_DEPTH } from './tree.ts';

/**
 * Forests of one binning as bytes: a magic word, the version of this format, the cut points, the forests, and the
 * SHA-256 of all that. Little-endian. A reader refuses what it does not know or what was damaged.
 */

const MAGIC = 'TRVFORST';
const VERSION = 1;
const CHECKSUM_BYTES = 32;
/** Sums of leaves are 32-bit whole numbers, which more than 65,536 trees could overflow. We train 200. */
export const MAX_TREES = 10_000;
/** The largest sum of all trees: far above any logarithm of a time, and small enough that all results stay finite. */
const MAX_SUM = 1_000_000;

export function encodeForests(forests: readonly Forest[]): Uint8Array {
  const binning = forests[0]?.binning ?? { edges: [] };
  if (forests.some((forest) => forest.binning !== binning)) {
    throw new RangeError('Cannot encode the forests: they must share one binning');
  }
  const parts: Uint8Array[] = [
    new TextEncoder().encode(MAGIC),
    encodeNumbers([VERSION, binning.edges.length, forests.length]),
    ...binning.edges.flatMap((edges) => [encodeNumbers([edges.length]), toLittleEndian(edges)]),
    ...forests.flatMap(encodeForest),
  ];
  const body = Buffer.concat(parts);
  return new Uint8Array(Buffer.concat([body, checksum(body)]));
}

export function decodeForests(bytes: Uint8Array): Forest[] {
  const reader = openReader(bytes);
  const [featureCount, forestCount] = [reader.count(256), reader.count(1024)];
  const edges = Array.from({ length: featureCount }, () => reader.floats(reader.count(MAX_BINS)));
  if (!edges.every(isRising)) throw refuse('cut points must be in rising order');
  const binning: Binning = { edges };
  const forests = Array.from({ length: forestCount }, () => decodeForest(binning, reader));
  reader.end();
  return forests;
}

function encodeForest(forest: Forest): Uint8Array[] {
  const numbers = new DataView(new ArrayBuffer(16));
  numbers.setFloat64(0, forest.base, true);
  numbers.setFloat64(8, forest.leafScale, true);
  return [
    encodeNumbers([forest.treeCount]),
    new Uint8Array(numbers.buffer),
    forest.features,
    forest.thresholds,
    toLittleEndian(forest.leaves),
    toLittleEndian(forest.covers),
  ];
}

function decodeForest(binning: Binning, reader: Reader): Forest {
  const treeCount = reader.count(MAX_TREES);
  const [base, leafScale] = [reader.double(), reader.double()];
  const features = reader.bytes(treeCount * MAX_DEPTH);
  const thresholds = reader.bytes(treeCount * MAX_DEPTH);
  const leaves = reader.shorts(treeCount * LEAVES);
  const covers = reader.floats(treeCount * LEAVES);
  if (!(leafScale > 0 && Math.abs(base) + leafScale * 32_768 * treeCount <= MAX_SUM))
    throw refuse(`its trees must add up to at most ${MAX_SUM}`);
  if (!covers.every((cover) => cover >= 0 && cover < Number.POSITIVE_INFINITY))
    throw refuse('covers must be finite numbers of 0 or more');
  if (features.some((feature) => feature >= binning.edges.length))
    throw refuse('a tree splits a feature that does not exist');
  return { binning, treeCount, base, leafScale, features, thresholds, leaves, covers };
}

/** False for NaN too, which is in no order. */
function isRising(edges: Float32Array): boolean {
  for (let i = 0; i < edges.length; i++)
    if (!(i === 0 ? !Number.isNaN(edges[0]) : edges[i - 1]! < edges[i]!)) return false;
  return true;
}

interface Reader {
  count(atMost: number): number;
  double(): number;
  floats(count: number): Float32Array;
  shorts(count: number): Int16Array;
  bytes(count: number): Uint8Array;
  end(): void;
}

/** Opens a reader, after the checks that need no knowledge of the content. */
function openReader(bytes: Uint8Array): Reader {
  const magic = new TextDecoder().decode(bytes.subarray(0, MAGIC.length));
  if (magic !== MAGIC) throw refuse('this is not a file of forests');
  const body = bytes.subarray(0, Math.max(MAGIC.length, bytes.length - CHECKSUM_BYTES));
  const reader = createReader(body, MAGIC.length);
  // Checked before the checksum, which a later version may compute differently.
  const version = reader.count(0xffff_ffff);
  if (version !== VERSION) throw refuse(`its format is version ${version}, this program reads version ${VERSION}`);
  if (!checksum(body).equals(bytes.subarray(body.length))) throw refuse('it is damaged, the checksum differs');
  return reader;
}

function createReader(body: Uint8Array, start: number): Reader {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  let at = start;
  const take = (length: number): number => {
    if (at + length > body.length) throw refuse('it ends too early');
    at += length;
    return at - length;
  };
  return {
    count(atMost) {
      const value = view.getUint32(take(4), true);
      if (value > atMost) throw refuse(`a count of ${value} is over ${atMost}`);
      return value;
    },
    double: () => view.getFloat64(take(8), true),
    // Reads whole arrays at once, since a service decodes a model between two calls.
    floats: (count) => new Float32Array(copyNative(body, take(count * 4), count, 4)),
    shorts: (count) => new Int16Array(copyNative(body, take(count * 2), count, 2)),
    bytes(count) {
      const from = take(count);
      return new Uint8Array(body.subarray(from, from + count));
    },
    end() {
      if (at !== body.length) throw refuse('there is more in it than there should be');
    },
  };
}

function encodeNumbers(values: readonly number[]): Uint8Array {
  const view = new DataView(new ArrayBuffer(values.length * 4));
  values.forEach((value, i) => {
    view.setUint32(i * 4, value, true);
  });
  return new Uint8Array(view.buffer);
}

function checksum(body: Uint8Array): Buffer {
  return createHash('sha256').update(body).digest();
}

function refuse(reason: string): Error {
  return new RangeError(`Cannot read the forests: ${reason}`);
}
