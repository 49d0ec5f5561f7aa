/** What inputs do to the predictions of the served version. */

export interface EffectsView {
  readonly version: number;
  readonly madeAtMs: number;
  readonly rows: number;
  readonly targets: readonly TargetEffectsView[];
}

export interface TargetEffectsView {
  readonly target: string;
  /** In percent. */
  readonly mape: number;
  /** The input that matters most first; percentage points that the error grows by. */
  readonly importance: readonly { readonly field: string; readonly mapeAdded: number }[];
  readonly prices: readonly PriceView[];
}

/** Rising by value. */
export interface PriceView {
  readonly field: string;
  readonly points: readonly { readonly value: number; readonly ms: number }[];
}
