/** What the forest minimises. A residual is target − prediction; gradients here point downhill (they are −∂loss/∂prediction). */
export type Loss =
  | { readonly kind: 'squared' }
  | { readonly kind: 'absolute' }
  /** The pinball loss, whose minimum is the quantile of this level (0 … 1). */
  | { readonly kind: 'quantile'; readonly level: number }
  /** Squared up to `delta`, absolute beyond. */
  | { readonly kind: 'huber'; readonly delta: number };

/** Residuals with their weights, in arrays that are scratch: they may be reordered. */
export interface WeightedResiduals {
  readonly residuals: Float64Array;
  readonly weights: Float64Array;
}

/** Fills `gradients` with weight × gradient. */
export function computeGradients(loss: Loss, of: WeightedResiduals, gradients: Float64Array): void {
  const { residuals, weights } = of;
  if (loss.kind === 'squared') {
    for (let row = 0; row < residuals.length; row++) gradients[row] = weights[row]! * residuals[row]!;
    return;
  }
  for (let row = 0; row < residuals.length; row++) {
    gradients[row] = weights[row]! * computeGradient(loss, residuals[row]!);
  }
}

function computeGradient(loss: Exclude<Loss, { readonly kind: 'squared' }>, residual: number): number {
  switch (loss.kind) {
    case 'absolute':
      return Math.sign(residual);
    case 'quantile':
      return residual > 0 ? loss.level : residual < 0 ? loss.level - 1 : 0;
    case 'huber':
      return Math.max(-loss.delta, Math.min(loss.delta, residual));
  }
}

/** The loss itself, for early stopping. */
export function computeLoss(loss: Loss, residual: number): number {
  const size = Math.abs(residual);
  switch (loss.kind) {
    case 'squared':
      return residual * residual;
    case 'absolute':
      return size;
    case 'quantile':
      return residual > 0 ? loss.level * size : (1 - loss.level) * size;
    case 'huber':
      return size <= loss.delta ? 0.5 * size * size : loss.delta * (size - 0.5 * loss.delta);
  }
}

/** The constant that minimises the loss of these residuals; 0 when their weights sum to 0. */
export function fitConstant(loss: Loss, of: WeightedResiduals): number {
  switch (loss.kind) {
    case 'squared':
      return averageWeighted(of, (residual) => residual);
    case 'absolute':
      return findWeightedQuantile(of, 0.5);
    case 'quantile':
      return findWeightedQuantile(of, loss.level);
    case 'huber': {
      // One step from the median (Friedman 2001, equation 24).
      const median = findWeightedQuantile(of, 0.5);
      return median + averageWeighted(of, (residual) => computeGradient(loss, residual - median));
    }
  }
}

function averageWeighted(of: WeightedResiduals, value: (residual: number) => number): number {
  let sum = 0;
  let weight = 0;
  for (let i = 0; i < of.residuals.length; i++) {
    sum += of.weights[i]! * value(of.residuals[i]!);
    weight += of.weights[i]!;
  }
  return weight > 0 ? sum / weight : 0;
}

/** The smallest residual that has at least `level` of the weight at or below it. */
export function findWeightedQuantile(of: WeightedResiduals, level: number): number {
  const order = Uint32Array.from(of.residuals.keys()).sort((a, b) => of.residuals[a]! - of.residuals[b]!);
  const wanted = level * of.weights.reduce((sum, weight) => sum + weight, 0);
  let weight = 0;
  for (const i of order) {
    weight += of.weights[i]!;
    if (weight >= wanted && weight > 0) return of.residuals[i]!;
  }
  return 0;
}
