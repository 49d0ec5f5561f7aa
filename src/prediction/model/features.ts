/**
 * Computes every feature from the input fields, for training and serving alike. Values are stored feature by feature: feature `f`
 * of row `i` is `values[f * stride + i]`. They are 32-bit floats, with which our trees are trained and evaluated; only imported
 * trees of double precision get 64-bit floats.
 */
import { HISTORY_COLUMNS, HISTORY_FIELDS, METRIC_COLUMNS, METRIC_FIELDS } from '../schema/columns.ts';
import type { MetricColumns, PredictionTarget } from '../schema/observation-table.ts';

/** Features that depend on the input alone, so imported trees of other libraries may use them too. */
export const INPUT_FEATURE_NAMES = [
  ...METRIC_FIELDS,
  'effective_tokens',
  'tokens_ahead',
  'tokens_per_request',
  'running_minus_waiting',
  'kv_per_running',
] as const;

/**
 * `server_ttft_level` and `server_tpot_level` are the offsets of the server, as logarithms: from them the trees learn that load
 * slows some kinds of servers more. Names are part of the model file, and a model is served only while each of its features is
 * still computed here.
 */
export const FEATURE_NAMES = [
  ...INPUT_FEATURE_NAMES,
  ...HISTORY_FIELDS,
  'server_ttft_level',
  'server_tpot_level',
] as const;

/** The position of each target's server offset among the features. */
export const OFFSET_FEATURES: Readonly<Record<PredictionTarget, number>> = {
  ttft: FEATURE_NAMES.indexOf('server_ttft_level'),
  tpot: FEATURE_NAMES.indexOf('server_tpot_level'),
};

const FIRST_HISTORY = INPUT_FEATURE_NAMES.length;
/** The positions of `HISTORY_COLUMNS` among the features. */
export const HISTORY_FEATURES: readonly number[] = HISTORY_COLUMNS.map((_, h) => FIRST_HISTORY + h);

/**
 * How TTFT may move with each feature, so that it never falls with the length of the prompt, the waiting requests or the tokens
 * in flight, and never rises with the share of the prompt that is cached, however the training rows scatter. A feature made of
 * several inputs has the sign that all of them agree on; if they disagree, no split may use it. A feature not listed has no
 * constraint: candidates seldom differ in it alone.
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

/** Returns the monotone constraints of a target's trees, one sign for each feature, and the features that no split may use. */
export function constrainTrees(target: PredictionTarget): {
  readonly monotone: readonly number[];
  readonly unused: readonly number[];
} {
  // TPOT has no monotone constraint: candidates are compared mostly by their first tokens. Features of the queue (history) are
  // not used for it, since requests that wait now say little about later tokens.
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

/** The features of `count` rows; those of one feature begin at its number × stride. */
export interface FeatureMatrix {
  readonly values: Float32Array;
  readonly stride: number;
  readonly count: number;
}

export const FEATURE_COUNT = FEATURE_NAMES.length;

/** Fills the features of the first `columns.count` rows, except the offsets of their servers, which the caller fills. */
export function computeFeatures(columns: MetricColumns, values: Float32Array | Float64Array, stride: number): void {
  copyRaw(columns, values, stride);
  // The arrays are read once for each call: after V8 has seen objects of several shapes here, it would look them up again for
  // every row.
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
    // The prompt tokens that are not cached, alone and together with the tokens that are under way already.
    values[at] = effective;
    values[at + stride] = effective + inflight;
    values[at + 2 * stride] = inflight / (waiting + running + 1);
    // Some servers count waiting requests among the running ones: the difference is the batch.
    values[at + 3 * stride] = running - waiting;
    values[at + 4 * stride] = kvCacheUsage[i]! / (running + 1);
  }
  copyHistory(columns, values, stride);
}

/** Written for a missing value of the history: smaller than any value. */
export const MISSING_HISTORY = -1;

// V8 leaves the optimized code of a nested loop after each column. The inner loop is a function of its own, so it stays
// optimized.
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
