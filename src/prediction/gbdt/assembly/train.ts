/** Builds histograms and scans splits in AssemblyScript, compiled to train.wasm. */

// AssemblyScript. The memory is laid out by ../training/grow-tree-wasm.ts; the same in plain TypeScript is ../training/grow-tree.ts.
//
// An entry of a histogram is one 64-bit number, (sum of gradients << C) + sum of weights, C being `shift`: one
// addition keeps both sums, and a sibling is one subtraction. Rows are kept in the order of their leaves: their
// packed gradients in one array, their bins, eight to a 64-bit word, in further arrays of the same stride.

/** One histogram of eight features at a fixed address, so that no address has to be added up. Always left zeroed. */
const SCRATCH: usize = 1024;
const FEATURE_BYTES: usize = 256 * 8;

/** Starts a tree: packs the rows that take part (weight above 0) and copies their words. Returns their number. */
export function pack(
  gradients: usize,
  weights: usize,
  rowCount: i32,
  shift: i64,
  packed: usize,
  sourceWords: usize,
  words: usize,
  wordCount: i32,
  stride: usize,
): i32 {
  let count: usize = 0;
  for (let row: usize = 0; row < <usize>rowCount; row++) {
    const weight = load<i32>(weights + (row << 2));
    store<i64>(packed + (count << 3), ((<i64>load<i32>(gradients + (row << 2))) << shift) + <i64>weight);
    let from = sourceWords + (row << 3);
    let to = words + (count << 3);
    for (let word = 0; word < wordCount; word++) {
      store<u64>(to, load<u64>(from));
      from += stride;
      to += stride;
    }
    count += <usize>(weight > 0);
  }
  return <i32>count;
}

// @ts-ignore: decorator
@inline
function addTo(bin: u64, feature: usize, gradient: i64): void {
  const entry = <usize>bin & 0x7f8;
  store<i64>(SCRATCH + entry + feature * FEATURE_BYTES, load<i64>(SCRATCH + entry + feature * FEATURE_BYTES) + gradient);
}

/** Adds rows to the first `features` histograms of the scratch; the constant unrolls the body. */
// @ts-ignore: decorator
@inline
function addRows(features: i32, words: usize, packed: usize, count: i32): void {
  const end = words + (<usize>count << 3);
  while (words < end) {
    const word = load<u64>(words);
    const gradient = load<i64>(packed);
    addTo(word << 3, 0, gradient);
    if (features > 1) addTo(word >> 5, 1, gradient);
    if (features > 2) addTo(word >> 13, 2, gradient);
    if (features > 3) addTo(word >> 21, 3, gradient);
    if (features > 4) addTo(word >> 29, 4, gradient);
    if (features > 5) addTo(word >> 37, 5, gradient);
    if (features > 6) addTo(word >> 45, 6, gradient);
    if (features > 7) addTo(word >> 53, 7, gradient);
    words += 8;
    packed += 8;
  }
}

/** Sums one word's features over rows into the scratch. */
export function accumulate(features: i32, words: usize, packed: usize, count: i32): void {
  if (features == 1) addRows(1, words, packed, count);
  else if (features == 2) addRows(2, words, packed, count);
  else if (features == 3) addRows(3, words, packed, count);
  else if (features == 4) addRows(4, words, packed, count);
  else if (features == 5) addRows(5, words, packed, count);
  else if (features == 6) addRows(6, words, packed, count);
  else if (features == 7) addRows(7, words, packed, count);
  else addRows(8, words, packed, count);
}

/** Moves the scratch into a histogram, whose features have `binCounts` (32-bit) entries each, one after the other. */
export function flush(features: i32, binCounts: usize, histogram: usize): void {
  for (let feature: usize = 0; feature < <usize>features; feature++) {
    const bytes = <usize>load<u32>(binCounts + (feature << 2)) << 3;
    const scratch = SCRATCH + feature * FEATURE_BYTES;
    memory.copy(histogram, scratch, bytes);
    memory.fill(scratch, 0, bytes);
    histogram += bytes;
  }
}

/** sibling = parent − child, over `bins` entries, a multiple of 2. */
export function subtract(parent: usize, child: usize, sibling: usize, bins: i32): void {
  const end = parent + (<usize>bins << 3);
  while (parent < end) {
    v128.store(sibling, i64x2.sub(v128.load(parent), v128.load(child)));
    parent += 16;
    child += 16;
    sibling += 16;
  }
}

/**
 * Adds to `gains` (256 64-bit floats) what each threshold of a feature gains in the leaves of a level. The
 * arithmetic, in its order, is that of ../training/split.ts; the two sides of a split are the lanes.
 */
export function scan(
  histogram: usize,
  leafStride: usize,
  leafCount: i32,
  binCount: i32,
  shift: i64,
  l2: f64,
  minChildWeight: f64,
  sign: f64,
  gains: usize,
): void {
  const mask: i64 = (<i64>1 << shift) - 1;
  const penalty = f64x2.splat(l2);
  for (let leaf = 0; leaf < leafCount; leaf++) {
    let total: i64 = 0;
    for (let bin: usize = 0; bin < <usize>binCount; bin++) total += load<i64>(histogram + (bin << 3));
    const gradient = <f64>(total >> shift);
    const weight = <f64>(total & mask);
    if (weight >= 2 * minChildWeight && weight > 0) {
      const whole = (gradient * gradient) / (weight + l2);
      let sum: i64 = 0;
      for (let bin: usize = 0; bin < <usize>(binCount - 1); bin++) {
        sum += load<i64>(histogram + (bin << 3));
        const left = <f64>(sum >> shift);
        const leftWeight = <f64>(sum & mask);
        const rightWeight = weight - leftWeight;
        if (leftWeight < minChildWeight) continue;
        // The right side only gets lighter from here.
        if (rightWeight < minChildWeight) break;
        const sums = f64x2.replace_lane(f64x2.splat(left), 1, gradient - left);
        const weights = f64x2.replace_lane(f64x2.splat(leftWeight), 1, rightWeight);
        const values = f64x2.div(sums, f64x2.add(weights, penalty));
        const scores = f64x2.mul(sums, values);
        if (sign * (f64x2.extract_lane(values, 1) - f64x2.extract_lane(values, 0)) < 0) continue;
        const gain = f64x2.extract_lane(scores, 0) + f64x2.extract_lane(scores, 1) - whole;
        const entry = gains + (bin << 3);
        store<f64>(entry, load<f64>(entry) + gain);
      }
    }
    histogram += leafStride;
  }
}

// @ts-ignore: decorator
@inline
function moveWords(words: usize, targetWords: usize, wordCount: i32, stride: usize): void {
  store<i64>(targetWords, load<i64>(words));
  if (wordCount > 1) store<i64>(targetWords + stride, load<i64>(words + stride));
  if (wordCount > 2) store<i64>(targetWords + 2 * stride, load<i64>(words + 2 * stride));
  if (wordCount > 3) store<i64>(targetWords + 3 * stride, load<i64>(words + 3 * stride));
  for (let word = 4; word < wordCount; word++) {
    store<i64>(targetWords + <usize>word * stride, load<i64>(words + <usize>word * stride));
  }
}

// @ts-ignore: decorator
@inline
function moveRows(
  packed: usize,
  words: usize,
  targetPacked: usize,
  targetWords: usize,
  count: i32,
  wordCount: i32,
  stride: usize,
  tested: usize,
  threshold: i32,
): i32 {
  let left: usize = 0;
  let right: usize = <usize>count << 3;
  const end = packed + right;
  while (packed < end) {
    // Where a row goes is a coin toss: arithmetic, since a branch would be mispredicted half of the time.
    const isAbove = <usize>(<i32>load<u8>(tested) > threshold);
    right -= isAbove << 3;
    const to = left ^ ((left ^ right) & (0 - isAbove));
    store<i64>(targetPacked + to, load<i64>(packed));
    moveWords(words, targetWords + to, wordCount, stride);
    left += 8 - (isAbove << 3);
    packed += 8;
    words += 8;
    tested += 8;
  }
  return <i32>(left >> 3);
}

/**
 * Splits the rows of one leaf: those whose byte at `tested` is not above the threshold go to the front of the same
 * range in the target, the others, backwards, to its end. Addresses are of the first row; returns how many stayed in
 * front.
 */
export function partition(
  packed: usize,
  words: usize,
  targetPacked: usize,
  targetWords: usize,
  count: i32,
  wordCount: i32,
  stride: usize,
  tested: usize,
  threshold: i32,
): i32 {
  if (wordCount == 1) return moveRows(packed, words, targetPacked, targetWords, count, 1, stride, tested, threshold);
  if (wordCount == 2) return moveRows(packed, words, targetPacked, targetWords, count, 2, stride, tested, threshold);
  if (wordCount == 3) return moveRows(packed, words, targetPacked, targetWords, count, 3, stride, tested, threshold);
  return moveRows(packed, words, targetPacked, targetWords, count, wordCount, stride, tested, threshold);
}

/** Doubles the leaf of every row and adds its digit: 1 where the column is above the threshold. 16 rows a step. */
export function assign(column: usize, threshold: i32, leaves: usize, rowCount: i32): void {
  const limit = i8x16.splat(<i8>threshold);
  const end = leaves + <usize>rowCount;
  while (leaves < end) {
    const leaf = v128.load(leaves);
    v128.store(leaves, i8x16.sub(i8x16.add(leaf, leaf), i8x16.gt_u(v128.load(column), limit)));
    column += 16;
    leaves += 16;
  }
}
