/**
 * Predicts both times of each row of llm-d, as the chosen statistic and with bounds.
 *
 * TPOT rows of this interface are learned without a prefix score, because the routers send 0 in its place. So TPOT is predicted
 * without it too; otherwise what was learned about long uncached prompts would be applied to cached ones.
 */
import type { AnswerStatistic, BatchPredictor, PredictColumns, PredictedColumns } from '../schema/columns.ts';
import type { Estimate, Objective } from './prediction-answer.ts';

export interface RowEstimatorDependencies {
  readonly predictor: BatchPredictor;
  readonly objective: Objective;
}

/** Estimated times of rows, by the position of the row. */
export interface Estimates {
  readonly modelVersion: string;
  readonly readTtft: (row: number) => Estimate;
  readonly readTpot: (row: number) => Estimate;
}

/** Estimates the first `columns.count` rows, and sets their prefix scores to 0. */
export type EstimateRows = (targetModel: string, columns: PredictColumns) => Estimates;

export function createRowEstimator({ predictor, objective }: RowEstimatorDependencies): EstimateRows {
  const answered = statisticOf(objective);
  const statistics = [...new Set([answered, ...BOUNDS])];
  const [ms, low, high] = [answered, ...BOUNDS].map((statistic) => statistics.indexOf(statistic));
  const read = (predicted: readonly PredictedColumns[], time: keyof PredictedColumns, row: number): Estimate => {
    const answer = predicted[ms!]![time][row]!;
    return {
      ms: answer,
      // A mean of times with a long tail, or a high quantile, may lie outside.
      lowMs: Math.min(answer, predicted[low!]![time][row]!),
      highMs: Math.max(answer, predicted[high!]![time][row]!),
    };
  };
  return (targetModel, columns) => {
    const { modelVersion, predicted: ttft } = predictor.predictBatch(targetModel, columns, statistics);
    const tpot = clearPrefixScores(columns) ? predictor.predictBatch(targetModel, columns, statistics).predicted : ttft;
    return {
      modelVersion,
      readTtft: (row) => read(ttft, 'ttftMs', row),
      readTpot: (row) => read(tpot, 'tpotMs', row),
    };
  };
}

/** Four of five times are between these quantiles. */
const BOUNDS = ['p10', 'p90'] as const;

const QUANTILES: ReadonlyMap<number, AnswerStatistic> = new Map([
  [0.5, 'p50'],
  [0.9, 'p90'],
  [0.95, 'p95'],
  [0.99, 'p99'],
]);

function statisticOf({ type, quantile }: Objective): AnswerStatistic {
  return type === 'mean' ? 'mean' : (QUANTILES.get(quantile) ?? 'p90');
}

/** Returns true if a row had a score. */
function clearPrefixScores({ count, prefixCacheScore }: PredictColumns): boolean {
  let hadAny = false;
  for (let row = 0; row < count; row++) hadAny ||= prefixCacheScore[row]! > 0;
  prefixCacheScore.fill(0, 0, count);
  return hadAny;
}
