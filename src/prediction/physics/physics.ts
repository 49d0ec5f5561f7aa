/** Defines TTFT and TPOT as sums of physical terms, and fits their coefficients. */
import {
  addEquation,
  createNormalEquations,
  type NormalEquations,
  solveNonNegative,
} from './non-negative-least-squares.ts';
import {
  createTypicalLoad,
  type LoadColumns,
  listPriorCoefficients,
  type PhysicsTarget,
  readTerms,
  sumTerms,
} from './terms.ts';

/**
 * Predicts a time as a sum of terms with coefficients of 0 or more. So it is plausible before any observation, never falls as
 * load rises, and extrapolates. The trees correct it.
 */
export interface PhysicsModel {
  readonly target: PhysicsTarget;
  /** The price of each term: milliseconds per unit. */
  readonly coefficients: Float64Array;
  /** The smallest prediction, above 0 so that logarithms exist. */
  readonly floorMs: number;
}

export interface FitPhysicsOptions {
  /** One for each row; all 1 when left out. */
  readonly weights?: ArrayLike<number>;
  /** The prior counts as this many observations. */
  readonly priorWeight?: number;
  /** The fit starts from these coefficients and takes this many re-weightings. */
  readonly start?: { readonly coefficients: Float64Array; readonly rounds: number };
}

const PRIOR_WEIGHT = 8;
const ROUNDS = 6;
const MAX_LOG_RATIO = Math.log(1000);
/** Log errors beyond this count linearly: a stalled request says little about the load. */
const HUBER_DELTA = 0.7;
/** A microsecond and eleven days: no request takes less or more. */
const LEAST_MS = 1e-3;
const MOST_MS = 1e9;
const PRIOR_FLOOR_MS: Readonly<Record<PhysicsTarget, number>> = { ttft: 1, tpot: 0.5 };

export function createPriorPhysics(target: PhysicsTarget): PhysicsModel {
  return { target, coefficients: listPriorCoefficients(target), floorMs: PRIOR_FLOOR_MS[target] };
}

/**
 * Fits the coefficients to observed milliseconds, by relative error: non-negative least squares, re-weighted until
 * the squared log error (Huber beyond `HUBER_DELTA`) is smallest. Impossible times are left out.
 */
export function fitPhysics(
  target: PhysicsTarget,
  load: LoadColumns,
  observedMs: ArrayLike<number>,
  options: FitPhysicsOptions = {},
): PhysicsModel {
  const listed = listRows(target, load, observedMs, options.weights);
  const prior = scalePrior(target, listed, options.priorWeight ?? PRIOR_WEIGHT);
  const data = listed.filter((row) => isPossible(row, prior.coefficients));
  const rows = [...data, ...prior.rows];
  const floorMs = chooseFloor(target, data);
  const { coefficients: start, rounds } = options.start ?? { coefficients: prior.coefficients, rounds: ROUNDS };
  let coefficients = start;
  for (let round = 0; round < rounds; round++) {
    coefficients = solveNonNegative(weighEquations(rows, coefficients, floorMs));
  }
  return { target, coefficients, floorMs };
}

/** Fills the first `count` entries of `predictedMs`. */
export function evaluatePhysics(
  model: PhysicsModel,
  load: LoadColumns,
  count: number,
  predictedMs: Float64Array,
): void {
  const { target, coefficients, floorMs } = model;
  sumTerms(target, load, coefficients, predictedMs, count);
  for (let row = 0; row < count; row++) predictedMs[row] = Math.max(floorMs, predictedMs[row]!);
}

interface Row {
  readonly terms: Float64Array;
  readonly observedMs: number;
  readonly weight: number;
}

function listRows(
  target: PhysicsTarget,
  load: LoadColumns,
  observedMs: ArrayLike<number>,
  weights: ArrayLike<number> | undefined,
): Row[] {
  const terms = listTerms(target, load, observedMs.length);
  const rows: Row[] = [];
  for (let row = 0; row < observedMs.length; row++) {
    const weight = weights?.[row] ?? 1;
    const observed = observedMs[row]!;
    if (!isObservable(observed) || !(weight > 0)) continue;
    if (terms[row]!.every(Number.isFinite)) rows.push({ terms: terms[row]!, observedMs: observed, weight });
  }
  return rows;
}

function isObservable(ms: number): boolean {
  return ms >= LEAST_MS && ms <= MOST_MS;
}

/** The terms of each row. Loops, since the live state fits while calls wait. */
function listTerms(target: PhysicsTarget, load: LoadColumns, count: number): Float64Array[] {
  const columns = readTerms(target, load, count);
  return Array.from({ length: count }, (_, row) => {
    const terms = new Float64Array(columns.length);
    for (let term = 0; term < terms.length; term++) terms[term] = columns[term]![row]!;
    return terms;
  });
}

/**
 * A row that differs from the scaled prior by a factor of more than a thousand is a reporting error. With a huge load it would
 * distort the fit.
 */
function isPossible({ terms, observedMs }: Row, prior: Float64Array): boolean {
  return Math.abs(Math.log(observedMs / multiply(prior, terms))) <= MAX_LOG_RATIO;
}

/** Scales the whole prior by one factor to match the data, and returns it as observations of typical loads. */
function scalePrior(
  target: PhysicsTarget,
  data: readonly Row[],
  totalWeight: number,
): { readonly coefficients: Float64Array; readonly rows: readonly Row[] } {
  const prior = createPriorPhysics(target);
  const ratios = data
    .map((row) => Math.log(row.observedMs / multiply(prior.coefficients, row.terms)))
    .sort((a, b) => a - b);
  const median = ratios[ratios.length >> 1] ?? 0;
  const scale = Math.exp((median * data.length) / (data.length + 2));
  const coefficients = prior.coefficients.map((coefficient) => coefficient * scale);
  const { load, terms } = typicalOf(target);
  const predicted = new Float64Array(terms.length);
  evaluatePhysics({ ...prior, coefficients }, load, terms.length, predicted);
  const weight = totalWeight / terms.length;
  const rows = terms.map((own, i) => ({ terms: own, observedMs: predicted[i]!, weight }));
  return { coefficients, rows: weight > 0 ? rows.filter(({ observedMs }) => isObservable(observedMs)) : [] };
}

interface TypicalLoad {
  readonly load: LoadColumns;
  readonly terms: readonly Float64Array[];
}

const typicalLoads = new Map<PhysicsTarget, TypicalLoad>();

/** Cached, since every fit needs it. */
function typicalOf(target: PhysicsTarget): TypicalLoad {
  const known = typicalLoads.get(target);
  if (known !== undefined) return known;
  const load = createTypicalLoad();
  const made = { load, terms: listTerms(target, load, load.inputTokenLength.length) };
  typicalLoads.set(target, made);
  return made;
}

/** Chooses half of the first percentile of the observed times as the floor. */
function chooseFloor(target: PhysicsTarget, data: readonly Row[]): number {
  if (data.length === 0) return PRIOR_FLOOR_MS[target];
  const sorted = Float64Array.from(data, (row) => row.observedMs).sort();
  return sorted[Math.floor(sorted.length / 100)]! / 2;
}

/**
 * The normal equations whose solution lowers the squared log error: near the present prediction p of an observation
 * y, log(p / y)² is (p − y)² · (log(p / y) / (p − y))².
 */
function weighEquations(rows: readonly Row[], coefficients: Float64Array, floorMs: number): NormalEquations {
  const equations = createNormalEquations(coefficients.length);
  for (const { terms, observedMs, weight } of rows) {
    const predicted = Math.max(floorMs, multiply(coefficients, terms));
    const logError = Math.abs(Math.log(predicted / observedMs));
    const slope = logError < 1e-6 ? 1 / observedMs : logError / Math.abs(predicted - observedMs);
    const huber = logError <= HUBER_DELTA ? 1 : HUBER_DELTA / logError;
    addEquation(equations, terms, { value: observedMs, weight: weight * huber * slope * slope });
  }
  return equations;
}

function multiply(coefficients: Float64Array, terms: Float64Array): number {
  let sum = 0;
  for (let term = 0; term < terms.length; term++) sum += coefficients[term]! * terms[term]!;
  return sum;
}
