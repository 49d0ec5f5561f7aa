/** Combines the two forecasts of a row of a long report: one is compared with the observed time, the other updates the experts. */
import type { Forecast } from '../online/forecasts.ts';
import type { TargetForecast } from '../online/target-predictor.ts';
import type { PredictionTarget } from '../schema/observation-table.ts';

/**
 * Returns the forecast that a row of a longer report, which is learned in parts, is compared with. `before` was made before any
 * row of the report was learned, like the answer that a caller received: errors, coverage and intervals are judged by it. `late`
 * knows the earlier parts. The experts are judged by it, so that their weights follow a server within a report. If the model was
 * replaced between the two, the row is treated like a request that was under way: the live model forecasts it again before it
 * learns from it.
 */
export function judgeInReport(before: Forecast, late: Forecast): Forecast {
  const experts = before.swaps === late.swaps ? late : before;
  const judge = (target: PredictionTarget): TargetForecast => {
    const { mixtureMs, medianMs, weights, interval } = before[target];
    const reportedMeanwhile = Math.max(0, late[target].interval.observedBefore - interval.observedBefore);
    return { ...experts[target], mixtureMs, medianMs, weights, interval: { ...interval, reportedMeanwhile } };
  };
  const { observedTimes } = before;
  return { ...experts, observedTimes, ttft: judge('ttft'), tpot: judge('tpot') };
}
