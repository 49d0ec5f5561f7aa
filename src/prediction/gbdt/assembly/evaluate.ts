/** Evaluates forests in AssemblyScript, compiled to evaluate.wasm. */

// AssemblyScript. The layout of the memory is made by ../evaluate-wasm.ts; every address is a multiple of 16.

/** Bytes of one feature's cut points: 16 coarse ones (each the last of its 16), then all 256, padded with infinity. */
const EDGE_TABLE: usize = 16 * 4 + 256 * 4;
/** Bytes of one tree: 6 column offsets of 4 bytes, 6 thresholds, 2 unused, 64 low and 64 high leaf bytes. */
const TREE: usize = 32 + 128;
/** Sums of this many low bytes, and high bytes, fit in 16 bits. */
const FLUSH: i32 = 256;

/** How many of 16 rising cut points are below the value. */
// @ts-ignore: decorator
@inline
function countBelow(edges: usize, value: v128): i32 {
  const low = i16x8.narrow_i32x4_s(
    f32x4.lt(v128.load(edges), value),
    f32x4.lt(v128.load(edges, 16), value),
  );
  const high = i16x8.narrow_i32x4_s(
    f32x4.lt(v128.load(edges, 32), value),
    f32x4.lt(v128.load(edges, 48), value),
  );
  return popcnt(i8x16.bitmask(i8x16.narrow_i16x8_s(low, high)));
}

/** Turns the first `count` values of every column into bytes; `flip` is 0x80 for bytes that compare as signed. */
export function bin(
  edges: usize,
  values: usize,
  bins: usize,
  features: i32,
  capacity: i32,
  count: i32,
  flip: i32,
): void {
  for (let feature = 0; feature < features; feature++) {
    for (let row = 0; row < count; row++) {
      const value = f32x4.splat(load<f32>(values + (<usize>row << 2)));
      const block = countBelow(edges, value);
      const fine = countBelow(edges + 64 + (<usize>block << 6), value);
      store<u8>(bins + row, ((block << 4) + fine) ^ flip);
    }
    edges += EDGE_TABLE;
    values += <usize>capacity << 2;
    bins += capacity;
  }
}

// @ts-ignore: decorator
@inline
function addDigit(leaf: v128, bins: usize, tree: usize, level: usize): v128 {
  const column = load<u32>(tree + (level << 2));
  const above = i8x16.gt_s(v128.load(bins + column), v128.load8_splat(tree + 24 + level));
  // A true lane is -1: twice the leaf, plus one where above.
  return i8x16.sub(i8x16.add(leaf, leaf), above);
}

/** The 64-entry table at `table`, looked up by the indices split over its four quarters; foreign lanes give 0. */
// @ts-ignore: decorator
@inline
function lookUp(table: usize, q0: v128, q1: v128, q2: v128, q3: v128): v128 {
  return v128.or(
    v128.or(i8x16.relaxed_swizzle(v128.load(table), q0), i8x16.relaxed_swizzle(v128.load(table, 16), q1)),
    v128.or(i8x16.relaxed_swizzle(v128.load(table, 32), q2), i8x16.relaxed_swizzle(v128.load(table, 48), q3)),
  );
}

// @ts-ignore: decorator
@inline
function flushHalf(sums: usize, low: v128, high: v128): void {
  const a = i32x4.add(i32x4.extend_low_i16x8_u(low), i32x4.shl(i32x4.extend_low_i16x8_s(high), 8));
  const b = i32x4.add(i32x4.extend_high_i16x8_u(low), i32x4.shl(i32x4.extend_high_i16x8_s(high), 8));
  v128.store(sums, i32x4.add(v128.load(sums), a));
  v128.store(sums + 16, i32x4.add(v128.load(sums + 16), b));
}

/** Adds up to FLUSH trees for 16 rows to `sums` (16 whole numbers of 32 bits). */
function sumBlock(trees: usize, treeCount: i32, bins: usize, sums: usize): void {
  const zero = i8x16.splat(0);
  // Beyond 15 the top bit is set, which every machine's swizzle answers with 0.
  const lift = i8x16.splat(0x70);
  let low0 = zero;
  let low1 = zero;
  let high0 = zero;
  let high1 = zero;
  for (let tree = 0; tree < treeCount; tree++) {
    let leaf = i8x16.neg(i8x16.gt_s(v128.load(bins + load<u32>(trees)), v128.load8_splat(trees + 24)));
    leaf = addDigit(leaf, bins, trees, 1);
    leaf = addDigit(leaf, bins, trees, 2);
    leaf = addDigit(leaf, bins, trees, 3);
    leaf = addDigit(leaf, bins, trees, 4);
    leaf = addDigit(leaf, bins, trees, 5);
    const q0 = i8x16.add_sat_u(leaf, lift);
    const q1 = i8x16.add_sat_u(i8x16.sub(leaf, i8x16.splat(16)), lift);
    const q2 = i8x16.add_sat_u(i8x16.sub(leaf, i8x16.splat(32)), lift);
    const q3 = i8x16.add_sat_u(i8x16.sub(leaf, i8x16.splat(48)), lift);
    const low = lookUp(trees + 32, q0, q1, q2, q3);
    const high = lookUp(trees + 96, q0, q1, q2, q3);
    low0 = i16x8.add(low0, i16x8.extend_low_i8x16_u(low));
    low1 = i16x8.add(low1, i16x8.extend_high_i8x16_u(low));
    high0 = i16x8.add(high0, i16x8.extend_low_i8x16_s(high));
    high1 = i16x8.add(high1, i16x8.extend_high_i8x16_s(high));
    trees += TREE;
  }
  flushHalf(sums, low0, high0);
  flushHalf(sums + 32, low1, high1);
}

/** Fills `outputs` (64-bit floats) with base + scale × the sum of the trees, 16 rows at a time. */
export function evaluate(
  trees: usize,
  treeCount: i32,
  bins: usize,
  count: i32,
  sums: usize,
  outputs: usize,
  base: f64,
  scale: f64,
): void {
  for (let row = 0; row < count; row += 16) {
    memory.fill(sums, 0, 64);
    let from = trees;
    for (let left = treeCount; left > 0; left -= FLUSH) {
      sumBlock(from, min(left, FLUSH), bins + row, sums);
      from += <usize>FLUSH * TREE;
    }
    for (let lane: usize = 0; lane < 16; lane++) {
      store<f64>(outputs + ((<usize>row + lane) << 3), base + <f64>load<i32>(sums + (lane << 2)) * scale);
    }
  }
}
