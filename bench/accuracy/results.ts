/** Figures of a predictor in a cell, as they are printed, kept in a file and compared. */

import { bootstrapMean, type Interval } from '../../src/prediction/evaluation/bootstrap.ts';
import { PREDICTION_TARGETS, type PredictionTarget } from '../../src/prediction/schema/observation-table.ts';
import type { TestAnswer } from './predictors.ts';

export interface Figures {
  readonly rows: number;
  /** All in percent. */
  readonly mape: Interval;
  readonly p90Coverage?: Interval;
  /** Pinball loss of the p90 divided by the mean observed time. */
  readonly p90Pinball?: number;
}

export interface Result {
  readonly cell: string;
  readonly predictor: string;
  readonly missing?: boolean;
  readonly ttft?: Figures | undefined;
  readonly tpot?: Figures | undefined;
}

export function measure(answers: readonly TestAnswer[]): Figures | undefined {
  if (answers.length === 0) return undefined;
  const errors = answers.map(({ predictedMs, observedMs }) => (100 * Math.abs(predictedMs - observedMs)) / observedMs);
  const mape = bootstrapMean(errors);
  if (answers.some(({ p90Ms }) => p90Ms === undefined)) return { rows: answers.length, mape };
  const covered = answers.map(({ observedMs, p90Ms }) => (observedMs <= p90Ms! ? 100 : 0));
  const losses = answers.map(({ observedMs, p90Ms }) => pinball(observedMs - p90Ms!));
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  const p90Pinball = (100 * sum(losses)) / sum(answers.map(({ observedMs }) => observedMs));
  return { rows: answers.length, mape, p90Coverage: bootstrapMean(covered), p90Pinball };
}

/** The pinball loss at 0.9 (Koenker & Bassett 1978). */
function pinball(above: number): number {
  return above >= 0 ? 0.9 * above : -0.1 * above;
}

export const HEAD = PREDICTION_TARGETS.flatMap((target) => {
  const name = target.toUpperCase();
  return [`${name} MAPE % (90 %)`, `${name} p90 held % (90 %)`, `${name} pinball %`];
});

export function formatRow(result: Result): string {
  const texts = PREDICTION_TARGETS.flatMap((target) => formatFigures(result, target));
  return `| ${[result.cell, result.predictor, ...texts].join(' | ')} |`;
}

function formatFigures(result: Result, target: PredictionTarget): string[] {
  if (result.missing) return ['not installed', '–', '–'];
  const figures = result[target];
  if (figures === undefined) return ['–', '–', '–'];
  const { mape, p90Coverage, p90Pinball } = figures;
  return [
    formatInterval(mape),
    p90Coverage === undefined ? '–' : formatInterval(p90Coverage),
    p90Pinball === undefined ? '–' : p90Pinball.toFixed(2),
  ];
}

function formatInterval({ mean, low, high }: Interval): string {
  return `${mean.toFixed(1)} (${low.toFixed(0)}–${high.toFixed(0)})`;
}

const TOLERANCE = 1.03;

/** Cells in which one predictor has more than 1.03 times the error or the pinball loss of another one. */
export function listWorse(results: readonly Result[], predictor: string, other: string): string[] {
  return listTargets(results, predictor).flatMap(({ cell, target, figures }) => {
    const before = results.find((result) => result.cell === cell && result.predictor === other)?.[target];
    const pairs = [
      ['MAPE', before?.mape.mean, figures.mape.mean],
      ['pinball', before?.p90Pinball, figures.p90Pinball],
    ] as const;
    return pairs.flatMap(([name, was, is]) => {
      if (was === undefined || is === undefined || is <= TOLERANCE * was) return [];
      const share = (100 * (is / was - 1)).toFixed(0);
      return [`${cell}: ${target.toUpperCase()} ${name} ${was.toFixed(2)} → ${is.toFixed(2)} (+${share} %)`];
    });
  });
}

/** The geometric mean over cells and targets of one predictor's figure over another's. */
export function compareMeans(results: readonly Result[], predictor: string, other: string) {
  const ratios = { mape: [] as number[], pinball: [] as number[] };
  for (const { cell, target, figures } of listTargets(results, predictor)) {
    const before = results.find((result) => result.cell === cell && result.predictor === other)?.[target];
    if (before === undefined) continue;
    ratios.mape.push(figures.mape.mean / before.mape.mean);
    if (figures.p90Pinball !== undefined && before.p90Pinball !== undefined)
      ratios.pinball.push(figures.p90Pinball / before.p90Pinball);
  }
  return { mape: geometricMean(ratios.mape), pinball: geometricMean(ratios.pinball) };
}

/** Undefined without values: some predictors have no p90. */
function geometricMean(values: readonly number[]): number | undefined {
  if (values.length === 0) return undefined;
  return Math.exp(values.reduce((total, value) => total + Math.log(value), 0) / values.length);
}

export function listTargets(results: readonly Result[], predictor: string) {
  return results
    .filter((result) => result.predictor === predictor)
    .flatMap((result) =>
      PREDICTION_TARGETS.flatMap((target) => {
        const figures = result[target];
        return figures === undefined ? [] : [{ cell: result.cell, target, figures }];
      }),
    );
}
