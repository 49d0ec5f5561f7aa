/** Passes one observed time on to everything that learns from it: the live model (`online/target-predictor.ts`), live accuracy, drift. */
import { Counter } from 'prom-client';
import { createLabelLimit } from '../../telemetry/label-limit.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { World } from '../../world.ts';
import type { AnsweredRow } from '../live-accuracy/answered-row.ts';
import type { LatencyModel } from '../model/model.ts';
import { hasLearned } from '../online/early-physics.ts';
import type { Forecast } from '../online/forecasts.ts';
import type { SwappablePredictor } from '../online/predictor.ts';
import { forecastP90Ms } from '../online/target-predictor.ts';
import { readModelVersion } from '../schema/model-name.ts';
import type { PredictionTarget } from '../schema/observation-table.ts';
import { createDriftWatch, type DriftAlarm } from './drift-watch.ts';

export interface ReportedTime {
  readonly target: PredictionTarget;
  readonly observedMs: number;
  readonly outputTokens: number | undefined;
}

export interface LearnFromTimeDependencies {
  readonly world: Pick<World, 'nowMs'>;
  readonly metrics: Metrics;
  readonly predictor: SwappablePredictor;
  /** Receives each prediction with the observed time. */
  readonly onAnswered?: (row: AnsweredRow) => void;
  /** Called before the live state of a model learns from a time. */
  readonly beforeObserve?: (targetModel: string, forecast: Forecast, time: Omit<ReportedTime, 'observedMs'>) => void;
  /** Called for a model whose errors have drifted. */
  readonly onDrift: (targetModel: string, alarm: DriftAlarm) => void;
  /** Called for every model with a new observation. */
  readonly onObserved: (targetModel: string) => void;
}

export type LearnFromTime = (targetModel: string, forecast: Forecast, time: ReportedTime) => void;

export function createLearnFromTime(dependencies: LearnFromTimeDependencies): LearnFromTime {
  const { metrics, world, predictor, onAnswered, beforeObserve, onDrift, onObserved } = dependencies;
  const observed = new Counter({
    name: 'trivet_prediction_observed_total',
    help: 'Observed times that were learned from.',
    labelNames: ['model', 'target'],
    registers: [metrics],
  });
  const labelOf = createLabelLimit();
  const watchDrift = createDriftWatch({ metrics, labelOf, onDrift });
  return (model, given, { target, observedMs, outputTokens }) => {
    const live = predictor.live(model);
    const forecast = live.adopt(given);
    // Computed before the observation, which moves the interval.
    const p90Ms = forecastP90Ms(forecast[target]);
    const answered = toAnsweredRow(model, forecast, target);
    beforeObserve?.(model, forecast, { target, outputTokens });
    live.observe(forecast, target, { observedMs, outputTokens });
    onObserved(model);
    observed.inc({ model: labelOf(model), target });
    const server = Buffer.from(live.servers.addressOf(forecast.key.server) ?? []).toString();
    onAnswered?.({ ...answered, server, p90Ms, observedMs, nowMs: world.nowMs() });
    if (canDrift(live.model, forecast, target)) watchDrift(model, forecast, { target, observedMs, p90Ms });
  };
}

/**
 * A version that was replaced while the request was under way raises no alarm, which would start another training. The prior was
 * not trained on these servers, so it cannot drift from them, and fitting it to their reports moves its errors.
 */
function canDrift(model: LatencyModel, { modelId }: Forecast, target: PredictionTarget): boolean {
  return modelId === model.id && hasLearned(model, target);
}

function toAnsweredRow(targetModel: string, forecast: Forecast, target: PredictionTarget) {
  const { podType, metrics, modelId } = forecast;
  const version = readModelVersion(modelId, targetModel);
  return { targetModel, version, podType, target, metrics, predictedMs: forecast[target].medianMs };
}
