/**
 * Declares an evaluator, which sums forests over rows. The forests share one binning: values are turned into bytes once,
 * whatever the number of forests. Every kernel gives the same sums, to the last bit, since leaves are whole numbers.
 */
export interface Evaluator {
  readonly kernel: 'wasm' | 'plain';
  /** The most rows that one call takes: the number that was asked for, or more. */
  readonly capacity: number;
  /** The caller fills this, one column after the other: row `i` of feature `f` is `values[f * capacity + i]`. */
  readonly values: Float32Array;
  /** One array for each forest, filled by `evaluate`, valid until its next call. */
  readonly outputs: readonly Float64Array[];
  /** Predicts the first `count` rows of `values`. */
  evaluate(count: number): void;
}
