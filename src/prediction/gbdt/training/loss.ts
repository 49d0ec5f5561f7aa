/**
 * Defines the losses that a forest minimises, and their gradients. A residual is target − prediction; gradients here point
 * downhill (they are −∂loss/∂prediction).
 */
export type Loss =
  | { readonly kind: 'squared' }
  | { readonly kind: 'absolute' }
  /** The pinball loss, whose minimum is the quantile of this level (0 … 1). */
  | { readonly kind: 'quantile'; readonly level: number }
  /** Squared up to `delta`, absolute beyond. */
  | { readonly kind: 'huber'; readonly delta: number };

/** Fills `gradients` with weight × gradient. */
export function computeGradients(
  loss: Loss,
  { residuals, weights }: { readonly residuals: Float64Array; readonly weights: Float64Array },
  gradients: Float64Array,
): void {
  switch (loss.kind) {
    case 'squared':
      for (let row = 0; row < residuals.length; row++) gradients[row] = weights[row]! * residuals[row]!;
      return;
    case 'absolute':
      for (let row = 0; row < residuals.length; row++) gradients[row] = weights[row]! * signOf(residuals[row]!);
      return;
    case 'quantile':
      for (let row = 0; row < residuals.length; row++) {
        gradients[row] = weights[row]! * (loss.level - 0.5 + 0.5 * signOf(residuals[row]!));
      }
      return;
    case 'huber':
      for (let row = 0; row < residuals.length; row++)
        gradients[row] = weights[row]! * clip(residuals[row]!, loss.delta);
  }
}

/** Returns what Math.sign does, without the branch that random signs would have mispredicted half of the time. */
function signOf(value: number): number {
  return value / (Math.abs(value) + 1e-300);
}

export function clip(value: number, limit: number): number {
  return Math.max(-limit, Math.min(limit, value));
}

/** This many residuals are enough for their median size. */
const MEASURED_RESIDUALS = 4000;

/** The Huber loss that clips residuals at `medians` times their median size. */
export function clipAtMedian(residuals: Float64Array, medians: number): Loss {
  const step = Math.ceil(residuals.length / MEASURED_RESIDUALS);
  const sizes = new Float64Array(Math.floor(residuals.length / step));
  for (let i = 0; i < sizes.length; i++) sizes[i] = Math.abs(residuals[i * step]!);
  const delta = medians * sizes.sort()[sizes.length >> 1]!;
  // If half of the residuals are 0, only signs are left.
  return delta > 0 ? { kind: 'huber', delta } : { kind: 'absolute' };
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
