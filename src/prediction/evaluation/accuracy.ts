/** Measures accuracy: errors and coverage of predictions against observed times. */
import type { PredictionTarget } from '../schema/observation-table.ts';

/** A prediction of one target for one row, and the observed time, in milliseconds. */
export interface Answer {
  /** Position in the table that was evaluated. */
  readonly row: number;
  readonly observedMs: number;
  /** The median that would have been served. */
  readonly predictedMs: number;
  /** The predicted 90th percentile: nine of ten such requests should stay below it. */
  readonly p90Ms: number;
}

export type Answers = Readonly<Record<PredictionTarget, Answer[]>>;

/** All numbers except `rows` are in percent. */
export interface Accuracy {
  readonly rows: number;
  /** Mean of |predicted − observed| / observed. */
  readonly mape: number;
  /** Median of the same. */
  readonly mdape: number;
  /** Sum of |predicted − observed| divided by the sum of observed. */
  readonly wape: number;
  /** Mean of (predicted − observed) / observed: above 0 when predictions are too long. */
  readonly bias: number;
  /** Rows whose observed time was not above the predicted p90. */
  readonly p90Coverage: number;
  /** Rows whose observed time was not above the predicted median. */
  readonly p50Coverage: number;
  /** Mean pinball loss of the p90, divided by the mean observed time. */
  readonly p90Pinball: number;
}

/** Returns undefined without predictions. */
export function measureAccuracy(answers: readonly Answer[]): Accuracy | undefined {
  if (answers.length === 0) return undefined;
  const relative = answers.map(({ observedMs, predictedMs }) => (predictedMs - observedMs) / observedMs);
  const sizes = Float64Array.from(relative, Math.abs).sort();
  const observed = sum(answers, (answer) => answer.observedMs);
  return {
    rows: answers.length,
    mape: (100 * sizes.reduce((total, size) => total + size, 0)) / sizes.length,
    mdape: 100 * ((sizes[(sizes.length - 1) >> 1]! + sizes[sizes.length >> 1]!) / 2),
    wape: (100 * sum(answers, ({ observedMs, predictedMs }) => Math.abs(predictedMs - observedMs))) / observed,
    bias: (100 * relative.reduce((total, error) => total + error, 0)) / relative.length,
    p90Coverage: (100 * answers.filter(({ observedMs, p90Ms }) => observedMs <= p90Ms).length) / answers.length,
    p50Coverage:
      (100 * answers.filter(({ observedMs, predictedMs }) => observedMs <= predictedMs).length) / answers.length,
    p90Pinball: (100 * sum(answers, ({ observedMs, p90Ms }) => pinball(observedMs, p90Ms, 0.9))) / observed,
  };
}

/** The loss that the quantile of this level minimizes (Koenker & Bassett 1978). */
function pinball(observed: number, predicted: number, level: number): number {
  return observed >= predicted ? level * (observed - predicted) : (1 - level) * (predicted - observed);
}

function sum(answers: readonly Answer[], value: (answer: Answer) => number): number {
  return answers.reduce((total, answer) => total + value(answer), 0);
}
