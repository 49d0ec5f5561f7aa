/** Watches the error of the trees and the coverage of the p90, for each target that a version has learned, and raises drift alarms. */
import { Counter } from 'prom-client';
import type { Metrics } from '../../telemetry/metrics.ts';
import { createDriftDetector, type DriftCause, type DriftDetector, isNearlyCovered } from '../online/drift.ts';
import type { Forecast } from '../online/forecasts.ts';
import type { PredictionTarget } from '../schema/observation-table.ts';

export interface DriftAlarm {
  readonly target: PredictionTarget;
  readonly cause: DriftCause;
}

export interface DriftWatchDependencies {
  readonly metrics: Metrics;
  readonly labelOf: (model: string) => string;
  /** Called at each drift alarm: of errors, or of coverage. */
  readonly onDrift: (targetModel: string, alarm: DriftAlarm) => void;
}

export type WatchDrift = (
  targetModel: string,
  forecast: Forecast,
  time: { readonly target: PredictionTarget; readonly observedMs: number; readonly p90Ms: number },
) => void;

const MAX_DETECTORS = 1024;
/** The log residual is clipped at this, so that a single request cannot raise an alarm. */
const MAX_RESIDUAL = 2;

export function createDriftWatch({ metrics, labelOf, onDrift }: DriftWatchDependencies): WatchDrift {
  const alarms = new Counter({
    name: 'trivet_prediction_drift_alarms_total',
    help: 'Alarms that a model no longer fits: its errors have shifted (Page–Hinkley test on the log residual), or too few times stay below its p90.',
    labelNames: ['model', 'target', 'cause'],
    registers: [metrics],
  });
  const detectors = new Map<string, DriftDetector>();
  return (targetModel, forecast, { target, observedMs, p90Ms }) => {
    // The error of the trees without the mean residuals of servers, which would hide a drift.
    const residual = Math.log(observedMs) - forecast[target].logTrees;
    const clipped = Math.max(-MAX_RESIDUAL, Math.min(MAX_RESIDUAL, residual));
    const detector = useDetector(detectors, `${target} ${forecast.modelId}`);
    const cause = detector.observe(clipped, isNearlyCovered(observedMs, p90Ms));
    if (cause === undefined) return;
    alarms.inc({ model: labelOf(targetModel), target, cause });
    onDrift(targetModel, { target, cause });
  };
}

/**
 * Finds or creates the detector of a key, which has a version and a target: the errors of another version differ without any drift.
 * Keeps the detectors that were used last: a `Map` lists its keys in the order of insertion.
 */
function useDetector(detectors: Map<string, DriftDetector>, key: string): DriftDetector {
  const detector = detectors.get(key) ?? createDriftDetector();
  detectors.delete(key);
  detectors.set(key, detector);
  if (detectors.size > MAX_DETECTORS) detectors.delete(detectors.keys().next().value!);
  return detector;
}
