/** Finds cells with a p90 coverage outside 88 to 92 %, and computes how many such cells chance alone would give. */
import { type Figures, listTargets, type Result } from './results.ts';

const LEAST_COVERAGE = 88;
const MOST_COVERAGE = 92;
const P90 = 0.9;
/** A bootstrap interval of 90 % is this many standard deviations wide. */
const INTERVAL_DEVIATIONS = 2 * 1.645;

function isWithin(percent: number): boolean {
  return percent >= LEAST_COVERAGE && percent <= MOST_COVERAGE;
}

/**
 * Returns the effective sample size. Requests that were under way together are covered or missed together, which makes the bootstrap
 * interval wider than that of the same number of independent rows.
 */
function countIndependent({ rows, p90Coverage }: Figures): number {
  if (p90Coverage === undefined) return rows;
  const { mean, low, high } = p90Coverage;
  const deviation = (high - low) / INTERVAL_DEVIATIONS;
  if (deviation === 0) return rows;
  return Math.max(1, Math.min(rows, Math.round((mean * (100 - mean)) / deviation ** 2)));
}

/** The probability that 88 to 92 % of this many independent rows are below an exact p90. */
function chanceWithin(rows: number): number {
  let logChance = rows * Math.log(1 - P90);
  let chance = 0;
  for (let below = 0; below <= rows; below++) {
    if (isWithin((100 * below) / rows)) chance += Math.exp(logChance);
    logChance += Math.log(((rows - below) / (below + 1)) * (P90 / (1 - P90)));
  }
  return chance;
}

/** Writes a line for each value outside 88 to 92 %, and then how many of all would be outside by chance. */
export function describeUncovered(results: readonly Result[], predictor: string): string[] {
  const values = listTargets(results, predictor).filter(({ figures }) => figures.p90Coverage !== undefined);
  const outside = values.filter(({ figures }) => !isWithin(figures.p90Coverage!.mean));
  const byChance = values.reduce((sum, { figures }) => sum + 1 - chanceWithin(countIndependent(figures)), 0);
  const lines = outside.map(
    ({ cell, target, figures }) => `${cell}: ${target.toUpperCase()} ${describeValue(figures)}`,
  );
  return [...lines, `${outside.length} of ${values.length}; by chance a p90 that is right has ${byChance.toFixed(0)}`];
}

function describeValue(figures: Figures): string {
  const { mean, low, high } = figures.p90Coverage!;
  const independent = countIndependent(figures);
  const chance = (100 * chanceWithin(independent)).toFixed(0);
  const rows = `${figures.rows} rows, as ${independent} independent ones`;
  return `${mean.toFixed(1)} % (${low.toFixed(1)}–${high.toFixed(1)}), ${rows}: a right p90 is within in ${chance} % of such cells`;
}
