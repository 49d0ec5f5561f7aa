/** Draws seeded random numbers for a simulation: exponential, log-normal. */
export type Random = () => number;

export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Draws from an exponential distribution with this mean. */
export function drawExponential(random: Random, mean: number): number {
  return -mean * Math.log(1 - random());
}

/** Draws from a log-normal distribution with this median and sigma of the logarithm (Box and Muller 1958). */
export function drawLogNormal(random: Random, median: number, sigma: number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return median * Math.exp(sigma * normal);
}
