/** Selects a quantile of the residuals in each leaf. */
import { createKeys, decodeKeys } from '../float-keys.ts';
import { LEAVES } from '../tree.ts';

/** Residuals by leaf; a row of weight 0 does not take part. */
export interface LeafRows {
  readonly leafOfRow: Uint8Array;
  readonly residuals: Float64Array;
  readonly weights: Float64Array;
}

const DIGIT_BITS = 8;
const DIGITS = 1 << DIGIT_BITS;
const KEY_BITS = 32;

/**
 * Finds, for every leaf, the smallest residual (as a 32-bit float) that has at least `level` of the leaf's weight at or
 * below it; 0 for leaves without weight. By radix selection: four passes over the rows find the four bytes of all
 * leaves' answers together, the highest first, without sorting or grouping.
 */
export function selectLeafQuantiles(rows: LeafRows, level: number): Float64Array {
  const keys = createKeys(rows.residuals);
  const sums = new Float64Array(LEAVES * DIGITS);
  const prefixes = new Uint32Array(LEAVES);
  let missing: Float64Array | undefined;
  for (let shift = KEY_BITS - DIGIT_BITS; shift >= 0; shift -= DIGIT_BITS) {
    sums.fill(0);
    addDigits(rows, keys, { shift, prefixes }, sums);
    missing ??= sumLeaves(sums).map((weight) => level * weight);
    for (let leaf = 0; leaf < LEAVES; leaf++) {
      prefixes[leaf] = (prefixes[leaf]! << DIGIT_BITS) | pickDigit(sums, leaf, missing);
    }
  }
  return Float64Array.from(decodeKeys(prefixes), (value, leaf) => (missing![leaf] === EMPTY ? 0 : value));
}

/** Marks a leaf without weight, in place of its missing weight. */
const EMPTY = -1;

interface Digit {
  readonly shift: number;
  /** The higher digits of each leaf's answer; rows with other digits are skipped. */
  readonly prefixes: Uint32Array;
}

function addDigits(rows: LeafRows, keys: Uint32Array, { shift, prefixes }: Digit, sums: Float64Array): void {
  const { leafOfRow, weights } = rows;
  const isFirst = shift + DIGIT_BITS === KEY_BITS;
  for (let row = 0; row < keys.length; row++) {
    const leaf = leafOfRow[row]!;
    const key = keys[row]! >>> shift;
    if (isFirst || key >>> DIGIT_BITS === prefixes[leaf]) sums[leaf * DIGITS + (key & (DIGITS - 1))]! += weights[row]!;
  }
}

function sumLeaves(sums: Float64Array): Float64Array {
  return Float64Array.from({ length: LEAVES }, (_, leaf) => {
    let sum = 0;
    for (let digit = 0; digit < DIGITS; digit++) sum += sums[leaf * DIGITS + digit]!;
    return sum;
  });
}

/** Picks the digit in which the missing weight is reached, and lowers `missing` by the weight of the digits below it. */
function pickDigit(sums: Float64Array, leaf: number, missing: Float64Array): number {
  let picked = EMPTY;
  let below = 0;
  for (let digit = 0; digit < DIGITS; digit++) {
    const weight = sums[leaf * DIGITS + digit]!;
    if (weight <= 0) continue;
    // Rounding may leave a tiny missing weight after the last digit that has weight: then that digit is picked.
    if (picked !== EMPTY) below += sums[leaf * DIGITS + picked]!;
    picked = digit;
    if (below + weight >= missing[leaf]!) break;
  }
  missing[leaf] = picked === EMPTY ? EMPTY : missing[leaf]! - below;
  return Math.max(picked, 0);
}
