/** Maps 32-bit floats to whole numbers of the same order, and sorts them by radix. */

const SIGN = 0x8000_0000;

export function createKeys(values: ArrayLike<number>): Uint32Array {
  const floats = new Float32Array(values);
  const bits = new Int32Array(floats.buffer);
  for (let i = 0; i < bits.length; i++) bits[i]! ^= (bits[i]! >> 31) | SIGN;
  return new Uint32Array(floats.buffer);
}

export function decodeKeys(keys: Uint32Array): Float32Array {
  const bits = Int32Array.from(keys);
  for (let i = 0; i < bits.length; i++) bits[i]! ^= bits[i]! < 0 ? SIGN : -1;
  return new Float32Array(bits.buffer);
}

const DIGIT_BITS = 11;
const DIGITS = 1 << DIGIT_BITS;

/** Sorts keys by three passes over their digits, the lowest first: several times as fast as comparing. */
export function sortKeys(keys: Uint32Array): Uint32Array {
  let [from, to] = [keys.slice(), new Uint32Array(keys.length)];
  for (let shift = 0; shift < 32; shift += DIGIT_BITS) {
    const places = new Uint32Array(DIGITS + 1);
    for (let i = 0; i < from.length; i++) places[((from[i]! >>> shift) & (DIGITS - 1)) + 1]! += 1;
    for (let digit = 0; digit < DIGITS; digit++) places[digit + 1]! += places[digit]!;
    for (let i = 0; i < from.length; i++) to[places[(from[i]! >>> shift) & (DIGITS - 1)]!++] = from[i]!;
    [from, to] = [to, from];
  }
  return from;
}
