/** Declares a prediction together with the time that was then observed. */
import type { PredictionTarget } from '../schema/observation-table.ts';

export interface AnsweredRow {
  readonly targetModel: string;
  /** The version that predicted; 0 is the prior. */
  readonly version: number;
  readonly podType: string;
  readonly server: string;
  readonly target: PredictionTarget;
  /** The median that was predicted when the dispatch was reported; without that report, just before the batch with this row was learned. */
  readonly predictedMs: number;
  readonly p90Ms: number;
  readonly observedMs: number;
  readonly nowMs: number;
  /** The inputs of the prediction, in the order of `MODEL_COLUMNS`. */
  readonly metrics: readonly number[];
}
