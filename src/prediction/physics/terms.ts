/** What a step of a server waits for, as terms that only ever add time: rising with load by construction. */

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
  /** Milliseconds a unit, before anything was observed: a mid-size model on one data-centre GPU. */
  readonly prior: number;
  readonly read: (load: LoadColumns, row: number) => number;
}

const constant = (): number => 1;
const length = (load: LoadColumns, row: number): number => load.inputTokenLength[row]!;
const lengthSquared = (load: LoadColumns, row: number): number => load.inputTokenLength[row]! ** 2;
/** Tokens that are not in the prefix cache; scores beyond 1 do not make work negative. */
const effectiveTokens = (load: LoadColumns, row: number): number =>
  Math.max(0, 1 - load.prefixCacheScore[row]!) * load.inputTokenLength[row]!;
const waiting = (load: LoadColumns, row: number): number => load.numRequestWaiting[row]!;
const running = (load: LoadColumns, row: number): number => load.numRequestRunning[row]!;
const kvCache = (load: LoadColumns, row: number): number => load.kvCacheUsage[row]!;
const inflight = (load: LoadColumns, row: number): number => load.inflightTokens[row]!;

const TERMS: Readonly<Record<PhysicsTarget, readonly Term[]>> = {
  ttft: [
    { name: 'constant', prior: 30, read: constant },
    { name: 'effective tokens', prior: 0.08, read: effectiveTokens },
    { name: 'length', prior: 0.005, read: length },
    { name: 'length²', prior: 5e-7, read: lengthSquared },
    { name: 'in-flight tokens', prior: 0.01, read: inflight },
    { name: 'waiting', prior: 40, read: waiting },
    { name: 'running', prior: 2, read: running },
    { name: 'KV cache', prior: 30, read: kvCache },
  ],
  tpot: [
    { name: 'constant', prior: 12, read: constant },
    { name: 'length', prior: 2e-4, read: length },
    { name: 'waiting', prior: 0.1, read: waiting },
    { name: 'running', prior: 0.2, read: running },
    { name: 'KV cache', prior: 8, read: kvCache },
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

/** Fills `values` with the terms of one row. */
export function readTerms(target: PhysicsTarget, load: LoadColumns, row: number, values: Float64Array): void {
  const terms = TERMS[target];
  for (let term = 0; term < terms.length; term++) values[term] = terms[term]!.read(load, row);
}

/** Loads from idle to full, in every combination: where the prior speaks while data do not. */
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
