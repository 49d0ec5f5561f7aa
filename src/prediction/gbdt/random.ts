/** Draws seeded random numbers for training: samples of rows, coin tosses (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Draws `count` of the numbers 0 … total - 1, as a mask of ones; every subset is equally likely (Knuth's algorithm S). */
export function sampleMask(total: number, count: number, random: () => number): Uint8Array {
  const mask = new Uint8Array(total);
  let missing = count;
  for (let i = 0; i < total; i++) {
    if (random() * (total - i) >= missing) continue;
    mask[i] = 1;
    missing -= 1;
  }
  return mask;
}

/** Sets each entry of `mask` to 1 with the probability `share`, else to 0 (xorshift, Marsaglia 2003). */
export function tossCoins(mask: Uint8Array, share: number, random: () => number): void {
  const limit = share * 4_294_967_296;
  let state = 1 + Math.floor(random() * 4_294_967_294);
  for (let i = 0; i < mask.length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    mask[i] = state >>> 0 < limit ? 1 : 0;
  }
}
