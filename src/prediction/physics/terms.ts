/** Defines the terms of the physics, which only add time as load rises, and their priors: what answers before any observation. */

/** Load as columns; `PredictColumns` is one. */
export interface LoadColumns {
  readonly inputTokenLength: ArrayLike<number>;
  readonly prefixCacheScore: ArrayLike<number>;
  readonly numRequestWaiting: ArrayLike<number>;
  readonly numRequestRunning: ArrayLike<number>;
  readonly kvCacheUsage: ArrayLike<number>;
  readonly inflightTokens: ArrayLike<number>;
}

export type PhysicsTarget = 'ttft' | 'tpot';

interface Term {
  readonly name: string;
  /** The price in milliseconds per unit before any observation: that of a mid-size model on one data-centre GPU. */
  readonly prior: number;
  readonly add: AddTerm;
}

/**
 * Adds the term of each of the first `count` rows, times its price, to the sums. A whole column in a loop of its own:
 * a function called for each row would cost many times what it computes.
 */
type AddTerm = (load: LoadColumns, price: number, sums: Float64Array, count: number) => void;

const constant: AddTerm = (_load, price, sums, count) => {
  for (let row = 0; row < count; row++) sums[row]! += price;
};
const column =
  (name: keyof LoadColumns): AddTerm =>
  (load, price, sums, count) => {
    const values = load[name];
    for (let row = 0; row < count; row++) sums[row]! += price * values[row]!;
  };
const lengthSquared: AddTerm = ({ inputTokenLength }, price, sums, count) => {
  for (let row = 0; row < count; row++) sums[row]! += price * inputTokenLength[row]! ** 2;
};
/** Tokens that are not in the prefix cache; scores beyond 1 do not make work negative. */
const effectiveTokens: AddTerm = ({ inputTokenLength, prefixCacheScore }, price, sums, count) => {
  for (let row = 0; row < count; row++)
    sums[row]! += price * (Math.max(0, 1 - prefixCacheScore[row]!) * inputTokenLength[row]!);
};
/**
 * Rises to 1, and is half of that at `half`. A step of a server has a budget of prompt tokens: once prompts fill it, more of them
 * wait without making the step longer, and TPOT no longer rises with the queue.
 */
const levellingOff =
  (name: keyof LoadColumns, half: number): AddTerm =>
  (load, price, sums, count) => {
    const values = load[name];
    for (let row = 0; row < count; row++) sums[row]! += price * (values[row]! / (values[row]! + half));
  };
/**
 * Costs nothing at first and its full price far beyond `half`: the few prompts under way on an idle server are nearly
 * computed, those of a long queue are not.
 */
const settingIn =
  (name: keyof LoadColumns, half: number): AddTerm =>
  (load, price, sums, count) => {
    const values = load[name];
    for (let row = 0; row < count; row++) sums[row]! += price * (values[row]! * (values[row]! / (values[row]! + half)));
  };
const length = column('inputTokenLength');
const waiting = column('numRequestWaiting');
const running = column('numRequestRunning');
const kvCache = column('kvCacheUsage');
const inflight = column('inflightTokens');

const TERMS: Readonly<Record<PhysicsTarget, readonly Term[]>> = {
  ttft: [
    { name: 'constant', prior: 30, add: constant },
    { name: 'effective tokens', prior: 0.08, add: effectiveTokens },
    { name: 'length', prior: 0.005, add: length },
    { name: 'length²', prior: 5e-7, add: lengthSquared },
    { name: 'in-flight tokens', prior: 0.01, add: inflight },
    { name: 'waiting', prior: 40, add: waiting },
    { name: 'running', prior: 2, add: running },
    { name: 'KV cache', prior: 30, add: kvCache },
    { name: 'waiting, levelling off', prior: 0, add: levellingOff('numRequestWaiting', 4) },
    { name: 'in-flight tokens, from 16384', prior: 0, add: settingIn('inflightTokens', 16_384) },
    { name: 'in-flight tokens, from 131072', prior: 0, add: settingIn('inflightTokens', 131_072) },
  ],
  tpot: [
    { name: 'constant', prior: 12, add: constant },
    { name: 'length', prior: 2e-4, add: length },
    { name: 'waiting', prior: 0.1, add: waiting },
    { name: 'running', prior: 0.2, add: running },
    { name: 'KV cache', prior: 8, add: kvCache },
    { name: 'waiting, levelling off', prior: 3, add: levellingOff('numRequestWaiting', 1) },
    { name: 'in-flight tokens, levelling off', prior: 3, add: levellingOff('inflightTokens', 8192) },
    { name: 'running, levelling off', prior: 3, add: levellingOff('numRequestRunning', 16) },
  ],
};

export function countTerms(target: PhysicsTarget): number {
  return TERMS[target].length;
}

export function listTermNames(target: PhysicsTarget): readonly string[] {
  return TERMS[target].map((term) => term.name);
}

export function listPriorCoefficients(target: PhysicsTarget): Float64Array {
  return Float64Array.from(TERMS[target], (term) => term.prior);
}

/** Fills the first `count` sums with the terms of each row times their prices. */
export function sumTerms(
  target: PhysicsTarget,
  load: LoadColumns,
  prices: Float64Array,
  sums: Float64Array,
  count: number,
): void {
  sums.fill(0, 0, count);
  const terms = TERMS[target];
  // The fit leaves many terms without a price.
  for (let term = 0; term < terms.length; term++)
    if (prices[term] !== 0) terms[term]!.add(load, prices[term]!, sums, count);
}

/** Returns the terms of the first `count` rows, one column for each term. */
export function readTerms(target: PhysicsTarget, load: LoadColumns, count: number): Float64Array[] {
  return TERMS[target].map(({ add }) => {
    const values = new Float64Array(count);
    add(load, 1, values, count);
    return values;
  });
}

/** Returns loads from idle to full, in every combination: in a fit, the prior counts like observations at these. */
export function createTypicalLoad(): LoadColumns {
  const combinations = [100, 1000, 8000].flatMap((tokens) =>
    [0, 0.8].flatMap((prefix) =>
      [0, 10].flatMap((queue) =>
        [0, 8, 40].flatMap((active) =>
          [0, 0.5, 0.9].flatMap((kv) => [0, 20_000].map((flight) => [tokens, prefix, queue, active, kv, flight])),
        ),
      ),
    ),
  );
  const column = (index: number): Float64Array => Float64Array.from(combinations, (row) => row[index]!);
  return {
    inputTokenLength: column(0),
    prefixCacheScore: column(1),
    numRequestWaiting: column(2),
    numRequestRunning: column(3),
    kvCacheUsage: column(4),
    inflightTokens: column(5),
  };
}
