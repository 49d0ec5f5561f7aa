/** Declares the values that the page of input effects shows. */

/** How the inputs affect the predictions of the served version. */

export interface EffectsView {
  readonly version: number;
  readonly madeAtMs: number;
  readonly rows: number;
  readonly targets: readonly TargetEffectsView[];
}

export interface TargetEffectsView {
  readonly target: string;
  /** The error in percent. */
  readonly mape: number;
  /** Permutation importance: how many percentage points the error grows when the input is shuffled. The largest first. */
  readonly importance: readonly { readonly field: string; readonly mapeAdded: number }[];
  readonly prices: readonly PriceView[];
}

/** The points are in rising order of the input's value. */
export interface PriceView {
  readonly field: string;
  readonly points: readonly { readonly value: number; readonly ms: number }[];
}
