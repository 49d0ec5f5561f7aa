/**
 * Computes every feature from the input fields, for training and serving alike. The model is asked with the same features that
 * it learned from. Values lie feature by feature: feature `f` of row `i` is `values[f * stride + i]`, in 32-bit floats because
 * that is what trees are learned from and evaluated on.
 */
import { HISTORY_COLUMNS, HISTORY_FIELDS, METRIC_COLUMNS, METRIC_FIELDS } from '../schema/columns.ts';
import type { MetricColumns, PredictionTarget } from '../schema/observation-table.ts';

/** Features that are inputs as they were sent; imported trees of other libraries may use them too. */
export const INPUT_FEATURE_NAMES = [
  ...METRIC_FIELDS,
  'effective_tokens',
  'tokens_ahead',
  'tokens_per_request',
  'running_minus_waiting',
  'kv_per_running',
] as const;

/**
 * Names are part of the model file; a model is served only while each of its features is still computed here. From
 * the offsets of servers (`server_…_level` in files) the trees learn that load slows some kinds of servers more.
 */
export const FEATURE_NAMES = [
  ...INPUT_FEATURE_NAMES,
  ...HISTORY_FIELDS,
  'server_ttft_level',
  'server_tpot_level',
] as const;

/** Where the offset of each target stands among the features. */
export const OFFSET_FEATURES: Readonly<Record<PredictionTarget, number>> = {
  ttft: FEATURE_NAMES.indexOf('server_ttft_level'),
  tpot: FEATURE_NAMES.indexOf('server_tpot_level'),
};

const FIRST_HISTORY = INPUT_FEATURE_NAMES.length;
/** Where the columns of `HISTORY_COLUMNS` stand among the features. */
export const HISTORY_FEATURES: readonly number[] = HISTORY_COLUMNS.map((_, h) => FIRST_HISTORY + h);

/**
 * How TTFT may move with each feature, so that it never falls with the length of the prompt, the waiting requests or the
 * tokens in flight, and never rises with the share of the prompt that is cached, whatever the trees have learned. A
 * feature made of several inputs has the sign that all of them agree on; where they do not, the trees must not ask for it. A
 * feature that is not listed is free: routing does not compare servers by it alone.
 */
const TTFT_SIGNS: Readonly<Partial<Record<(typeof FEATURE_NAMES)[number], 1 | -1 | 'unused'>>> = {
  input_token_length: 1,
  prefix_cache_score: -1,
  num_request_waiting: 1,
  inflight_tokens: 1,
  effective_tokens: 1,
  tokens_ahead: 1,
  // It rises with the tokens in flight, and falls with the waiting requests.
  tokens_per_request: 'unused',
  running_minus_waiting: -1,
};

/** Returns what the trees of a target must respect: one sign a feature, as `BoostOptions.monotone`, and what they must not use. */
export function constrainTrees(target: PredictionTarget): {
  readonly monotone: readonly number[];
  readonly unused: readonly number[];
} {
  // TPOT is left free: candidates are compared by their first tokens. What waits now says little of later tokens.
  if (target === 'tpot') return { monotone: FEATURE_NAMES.map(() => 0), unused: HISTORY_FEATURES };
  const signs = FEATURE_NAMES.map((name) => TTFT_SIGNS[name] ?? 0);
  return {
    monotone: signs.map((sign) => (sign === 'unused' ? 0 : sign)),
    unused: signs.flatMap((sign, feature) => (sign === 'unused' ? [feature] : [])),
  };
}

export function isInputFeature(name: string): name is (typeof INPUT_FEATURE_NAMES)[number] {
  return INPUT_FEATURE_NAMES.some((known) => known === name);
}

/** Rows as the models see them. */
export interface FeatureMatrix {
  readonly values: Float32Array;
  readonly stride: number;
  readonly count: number;
}

export const FEATURE_COUNT = FEATURE_NAMES.length;

/** Fills what the input says of the first `columns.count` rows; the offsets of their servers are for the caller to fill. */
export function computeFeatures(columns: MetricColumns, values: Float32Array | Float64Array, stride: number): void {
  copyRaw(columns, values, stride);
  // The arrays once a call: V8 looks them up for every row where calls and tables of several kinds were seen.
  const { count, inputTokenLength, prefixCacheScore, numRequestWaiting, numRequestRunning } = columns;
  const { kvCacheUsage, inflightTokens } = columns;
  const derived = FIRST_DERIVED * stride;
  for (let i = 0; i < count; i++) {
    const length = inputTokenLength[i]!;
    const waiting = numRequestWaiting[i]!;
    const running = numRequestRunning[i]!;
    const inflight = inflightTokens[i]!;
    const effective = (1 - Math.min(1, prefixCacheScore[i]!)) * length;
    const at = derived + i;
    // The prompt tokens that must really be computed, alone and behind what is under way already.
    values[at] = effective;
    values[at + stride] = effective + inflight;
    values[at + 2 * stride] = inflight / (waiting + running + 1);
    // Some servers count waiting requests among the running ones: the difference is the batch.
    values[at + 3 * stride] = running - waiting;
    values[at + 4 * stride] = kvCacheUsage[i]! / (running + 1);
  }
  copyHistory(columns, values, stride);
}

/** Stands for a missing value of the history: smaller than any value. */
export const MISSING_HISTORY = -1;

// V8 leaves the optimized code of a nested loop after each column. As a function of its own, the inner loop stays optimized.
function copyHistory(columns: MetricColumns, values: Float32Array | Float64Array, stride: number): void {
  for (let h = 0; h < HISTORY_COLUMNS.length; h++) {
    const place = { at: (FIRST_HISTORY + h) * stride, count: columns.count };
    copyHistoryColumn(columns[HISTORY_COLUMNS[h]!], values, place);
  }
}

type Numbers = MetricColumns[(typeof METRIC_COLUMNS)[number]];

function copyHistoryColumn(
  column: Numbers,
  values: Float32Array | Float64Array,
  { at, count }: { readonly at: number; readonly count: number },
): void {
  for (let i = 0; i < count; i++) {
    const value = column[i]!;
    values[at + i] = value >= 0 ? value : MISSING_HISTORY;
  }
}

const FIRST_DERIVED = FEATURE_NAMES.indexOf('effective_tokens');

function copyRaw(columns: MetricColumns, values: Float32Array | Float64Array, stride: number): void {
  for (let f = 0; f < METRIC_COLUMNS.length; f++) {
    const place = { at: f * stride, count: columns.count };
    copyColumn(columns[METRIC_COLUMNS[f]!], values, place);
  }
}

function copyColumn(
  column: Numbers,
  values: Float32Array | Float64Array,
  { at, count }: { readonly at: number; readonly count: number },
): void {
  for (let i = 0; i < count; i++) values[at + i] = column[i]!;
}
