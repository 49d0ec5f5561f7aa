/** Blends the mean of observed / predicted that the training measured at each load with that of the recent residuals. */
import { logMeanRatio } from '../../model/calibration.ts';
import type { AdaptiveQuantiles } from './conformal.ts';
import { type IntervalScale, shareOfRecent } from './interval-scale.ts';

/**
 * Returns a function that reads the logarithm of the mean for each bucket. It computes them again only after the window was
 * sorted again or the scale was replaced.
 */
export function createLogMeans(ofSlot: AdaptiveQuantiles): (learned: IntervalScale) => Float64Array {
  let [scale, window]: [IntervalScale?, Float64Array?] = [];
  let blended = new Float64Array(0);
  return (learned) => {
    const recent = ofSlot.window();
    if (recent === undefined) return learned.logMeans;
    if (scale !== learned || window !== recent)
      blended = blendLogMeans(learned, recent, shareOfRecent(learned, ofSlot));
    [scale, window] = [learned, recent];
    return blended;
  };
}

function blendLogMeans(
  { logMeans, spreads }: IntervalScale,
  recent: Float64Array,
  share: number,
): Float64Array<ArrayBuffer> {
  return Float64Array.from(logMeans, (logMean, bucket) => {
    return logMean + share * (logMeanRatio(recent, spreads[bucket]!) - logMean);
  });
}
