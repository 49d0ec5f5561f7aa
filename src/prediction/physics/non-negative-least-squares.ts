/** Solves least squares with coefficients that are not negative. */

/** A least-squares problem by its normal equations: `gram` is AᵀWA, row by row, and `moment` is AᵀWb. */
export interface NormalEquations {
  readonly size: number;
  readonly gram: Float64Array;
  readonly moment: Float64Array;
}

export function createNormalEquations(size: number): NormalEquations {
  return { size, gram: new Float64Array(size * size), moment: new Float64Array(size) };
}

/** Adds one weighted row of the problem. */
export function addEquation(
  equations: NormalEquations,
  row: ArrayLike<number>,
  right: { readonly value: number; readonly weight: number },
): void {
  const { size, gram, moment } = equations;
  for (let a = 0; a < size; a++) {
    const scaled = right.weight * row[a]!;
    if (scaled === 0) continue;
    moment[a]! += scaled * right.value;
    for (let b = 0; b <= a; b++) gram[a * size + b]! += scaled * row[b]!;
  }
}

/** Relative to 1, since columns are scaled to unit length: below it a gradient or a pivot is noise. */
const TOLERANCE = 1e-10;

/**
 * Returns the non-negative x with the least squared error of Ax = b: the active-set method of Lawson & Hanson 1974, chapter 23
 * (NNLS), on the normal equations. Columns that are zero, or that repeat others, get 0 instead of breaking the solution.
 */
export function solveNonNegative(equations: NormalEquations): Float64Array {
  const { size } = equations;
  const { gram, moment, lengths } = scaleColumns(equations);
  const solution = new Float64Array(size);
  const passive = new Set<number>();
  const barred = new Set<number>();
  // Each round lets one column in, and 3n rounds suffice in practice. The bound also ends a loop that rounding errors would keep
  // going.
  for (let round = 0; round < 3 * size; round++) {
    const entering = findSteepest(gram, moment, solution, (column) => passive.has(column) || barred.has(column));
    if (entering === undefined) break;
    passive.add(entering);
    if (!settle(gram, moment, solution, passive)) {
      passive.delete(entering);
      barred.add(entering);
    } else if (!passive.has(entering)) barred.add(entering);
    else barred.clear();
  }
  return solution.map((value, column) => (lengths[column]! > 0 ? value / lengths[column]! : 0));
}

/** Scales to columns of unit length, so that squared tokens and ratios are comparable; also fills the upper half. */
function scaleColumns({ size, gram, moment }: NormalEquations): {
  readonly gram: Float64Array;
  readonly moment: Float64Array;
  readonly lengths: Float64Array;
} {
  const lengths = Float64Array.from({ length: size }, (_, column) => Math.sqrt(gram[column * size + column]!));
  const inverse = lengths.map((length) => (length > 0 ? 1 / length : 0));
  const scaled = gram.map((_, entry) => {
    const [a, b] = [Math.floor(entry / size), entry % size];
    return gram[Math.max(a, b) * size + Math.min(a, b)]! * inverse[a]! * inverse[b]!;
  });
  return { gram: scaled, moment: moment.map((value, column) => value * inverse[column]!), lengths };
}

/** The column along which the error falls fastest (the largest entry of the dual vector w = Aᵀ(b − Ax)). */
function findSteepest(
  gram: Float64Array,
  moment: Float64Array,
  solution: Float64Array,
  isOut: (column: number) => boolean,
): number | undefined {
  const size = moment.length;
  const scale = moment.reduce((max, value) => Math.max(max, Math.abs(value)), 0);
  let steepest: number | undefined;
  let best = TOLERANCE * scale;
  for (let column = 0; column < size; column++) {
    if (isOut(column)) continue;
    let slope = moment[column]!;
    for (let other = 0; other < size; other++) slope -= gram[column * size + other]! * solution[other]!;
    if (slope > best) [steepest, best] = [column, slope];
  }
  return steepest;
}

/** Solves for the passive columns, dropping those that would turn negative; false when the columns are dependent. */
function settle(gram: Float64Array, moment: Float64Array, solution: Float64Array, passive: Set<number>): boolean {
  while (passive.size > 0) {
    const columns = [...passive];
    const target = solveSymmetric(gram, moment, columns);
    if (target === undefined) return false;
    if (target.every((value) => value > 0)) {
      solution.fill(0);
      columns.forEach((column, i) => {
        solution[column] = target[i]!;
      });
      return true;
    }
    stepTowards(solution, columns, target, passive);
  }
  return true;
}

/** Moves towards the target as far as no value turns negative, and drops the columns that reach 0. */
function stepTowards(
  solution: Float64Array,
  columns: readonly number[],
  target: Float64Array,
  passive: Set<number>,
): void {
  let step = 1;
  columns.forEach((column, i) => {
    const from = solution[column]!;
    if (target[i]! <= 0) step = Math.min(step, from / (from - target[i]! || 1));
  });
  columns.forEach((column, i) => {
    solution[column]! += step * (target[i]! - solution[column]!);
    if (target[i]! > 0 || solution[column]! > TOLERANCE * Math.abs(target[i]!)) return;
    solution[column] = 0;
    passive.delete(column);
  });
}

/** Cholesky on the chosen columns; undefined when they are dependent. */
function solveSymmetric(
  gram: Float64Array,
  moment: Float64Array,
  columns: readonly number[],
): Float64Array | undefined {
  const size = moment.length;
  const n = columns.length;
  const lower = new Float64Array(n * n);
  for (let a = 0; a < n; a++) {
    for (let b = 0; b <= a; b++) {
      let sum = gram[columns[a]! * size + columns[b]!]!;
      for (let k = 0; k < b; k++) sum -= lower[a * n + k]! * lower[b * n + k]!;
      if (a === b && sum <= TOLERANCE) return undefined;
      lower[a * n + b] = a === b ? Math.sqrt(sum) : sum / lower[b * n + b]!;
    }
  }
  return substitute(
    lower,
    Float64Array.from(columns, (column) => moment[column]!),
  );
}

function substitute(lower: Float64Array, values: Float64Array): Float64Array {
  const n = values.length;
  for (let a = 0; a < n; a++) {
    for (let b = 0; b < a; b++) values[a]! -= lower[a * n + b]! * values[b]!;
    values[a]! /= lower[a * n + a]!;
  }
  for (let a = n - 1; a >= 0; a--) {
    for (let b = a + 1; b < n; b++) values[a]! -= lower[b * n + a]! * values[b]!;
    values[a]! /= lower[a * n + a]!;
  }
  return values;
}
