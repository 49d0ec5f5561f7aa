/** Writes predictions as the JSON of llm-d's interface. */

/** The statistic of the answered times, as the operator chose it: a quantile or the mean. */
export interface Objective {
  readonly type: 'quantile' | 'mean';
  readonly quantile: number;
}

/**
 * The clients know three types of model. Only for "lightgbm" do they always request predictions and never fetch the trees to
 * evaluate them themselves.
 */
export const MODEL_TYPE = 'lightgbm';

/** A time and its bounds, in milliseconds. */
export interface Estimate {
  readonly ms: number;
  readonly lowMs: number;
  readonly highMs: number;
}

/** Writes the end of an item, which all items of an answer have in common. */
export function writeItemEnd(objective: Objective, predictedAt: Date, lastModelLoad: Date | undefined): string {
  const common = {
    predicted_at: predictedAt.toISOString(),
    model_type: MODEL_TYPE,
    objective_type: objective.type,
    quantile: objective.quantile,
    last_model_load: lastModelLoad?.toISOString() ?? null,
  };
  return `,${JSON.stringify(common).slice(1)}`;
}

export function writeItem(ttft: Estimate, tpot: Estimate, end: string): string {
  const [ttftLow, ttftHigh, tpotLow, tpotHigh] = [ttft.lowMs, ttft.highMs, tpot.lowMs, tpot.highMs].map(round);
  return (
    `{"ttft_ms":${round(ttft.ms)},"tpot_ms":${round(tpot.ms)}` +
    `,"ttft_uncertainty":${uncertaintyOf(ttft)},"tpot_uncertainty":${uncertaintyOf(tpot)}` +
    `,"ttft_prediction_bounds":[${ttftLow},${ttftHigh}],"tpot_prediction_bounds":[${tpotLow},${tpotHigh}]${end}`
  );
}

/** The distance between the 10th and 90th percentile of a normal distribution, in standard deviations. */
const DEVIATIONS_WITHIN_BOUNDS = 2.563;

function uncertaintyOf({ lowMs, highMs }: Estimate): number {
  return round((highMs - lowMs) / DEVIATIONS_WITHIN_BOUNDS);
}

/** Rounds to microseconds: further digits mean nothing and make the answer 50 % longer. */
function round(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}

export interface BulkTotals {
  readonly count: number;
  readonly durationMs: number;
  /** The lax form also lists failed rows; here, rows never fail alone. */
  readonly hasErrors: boolean;
}

/** Joins items by commas, as bytes if the answer has several groups. */
export type ItemGroup = string | Uint8Array<ArrayBuffer>;

/** Assembles a large answer from bytes: joining and encoding a text of megabytes would delay all calls. */
export function writeBulk(groups: readonly ItemGroup[], { count, durationMs, hasErrors }: BulkTotals): ItemGroup {
  const errors = hasErrors ? ',"errors":[]' : '';
  const start = '{"predictions":[';
  const end =
    `]${errors},"total_requests":${count},"successful_predictions":${count}` +
    `,"failed_predictions":0,"processing_time_ms":${round(durationMs)}}`;
  const [first] = groups;
  if (groups.length === 1 && typeof first === 'string') return start + first + end;
  const parts = groups.flatMap((group, i) => [i === 0 ? start : ',', group]);
  return Buffer.concat([...parts, end].map((part) => (typeof part === 'string' ? Buffer.from(part) : part)));
}
