/**
 * Makes the forecast of a request at its dispatch. If the model is replaced before the times are observed, makes it again from
 * what was known at that dispatch.
 */
import { createPredictColumns, MODEL_COLUMNS } from '../schema/columns.ts';
import type { MetricColumns, PredictionTarget } from '../schema/observation-table.ts';
import { type MeansKey, readAsOf } from './known-before.ts';
import type { ReplayedParts } from './replay.ts';
import type { ServerKey } from './residual-tracker.ts';
import { type Batch, createBatch, createMixture, type Mixture } from './slot-batch.ts';
import type { SlotTable } from './slot-table.ts';
import { fillStalledQueueBounds } from './stalled-queue/stalled-queue-bounds.ts';
import { type ForecastOptions, renewForecast, type TargetForecast } from './target-predictor.ts';

/** The forecast for one request before its times were observed, with everything that learning from them needs. */
export interface Forecast {
  readonly key: ServerKey;
  readonly podType: string;
  /** The id of the model that predicted. */
  readonly modelId: string;
  /** How often the model had been replaced before. An early refit of the prior keeps the id of the model. */
  readonly swaps: number;
  /** How many times this process had observed when the request was sent. */
  readonly observedTimes: number;
  /** Values in the order of MODEL_COLUMNS; a missing one is negative. */
  readonly metrics: readonly number[];
  readonly ttft: TargetForecast;
  readonly tpot: TargetForecast;
}

export interface RequestKey {
  readonly key: ServerKey;
  readonly podType: string;
  /** When it was sent, if that was earlier than now. */
  readonly sentMs?: number | undefined;
}

export interface Forecasts {
  /** The forecast of row 0, as of now or as of its dispatch. */
  forecastRow(columns: MetricColumns, request: RequestKey): Forecast;
  /**
   * Returns the forecast itself unless the model was replaced meanwhile. Then the served model forecasts the request, with the
   * mean residuals and weights as of its dispatch. The present means include the times of concurrent requests, so they would give
   * a smaller residual than answers have, and too narrow intervals. The interval stays what was predicted when the request was
   * sent.
   */
  renew(forecast: Forecast, target: PredictionTarget): TargetForecast;
}

export function createForecasts({ tracker, moments, table }: ReplayedParts): Forecasts {
  const columns = createPredictColumns(1);
  columns.count = 1;
  const openRow = createRowOpener(table);

  /** Forecasts a target of the open row, with the means as they were after this number of observed times. */
  function forecastAsOf(forecastTarget: OpenRow, { observedTimes, ...of }: Moment): TargetForecast {
    const { key, target, podType, weights } = of;
    if (observedTimes === moments.observedTimes) return forecastTarget(target, { weights });
    const owners = { target, address: key.address, podType: key.podType, slot: table.keyOf(podType) };
    const later = moments.findLater(owners, observedTimes);
    const { weights: experts } = table.find(podType, 1)[target];
    return readAsOf({ tracker, moments, experts }, { key, target, later }, (known) =>
      forecastTarget(target, { asOf: known.state, weights: weights ?? known.weights }),
    );
  }

  return {
    forecastRow(row, { podType, key, sentMs }) {
      const forecastTarget = openRow(row, podType, key);
      const observedTimes = sentMs === undefined ? moments.observedTimes : moments.countBy(sentMs);
      const forecast = (target: PredictionTarget) =>
        forecastAsOf(forecastTarget, { key, podType, target, observedTimes });
      const metrics = MODEL_COLUMNS.map((name) => toStorable(row[name][0]!));
      const known = { modelId: table.model.id, swaps: table.swaps, observedTimes };
      return { key, podType, metrics, ...known, ttft: forecast('ttft'), tpot: forecast('tpot') };
    },
    renew(forecast, target) {
      const { key, podType, metrics, swaps, observedTimes } = forecast;
      if (swaps === table.swaps) return forecast[target];
      for (const [m, name] of MODEL_COLUMNS.entries()) columns[name][0] = metrics[m]! < 0 ? Number.NaN : metrics[m]!;
      const { weights } = forecast[target];
      const renewed = forecastAsOf(openRow(columns, podType, key), {
        key,
        podType,
        target,
        observedTimes,
        weights,
      });
      return renewForecast(forecast[target], renewed);
    },
  };
}

/** The moment that a forecast is made for. */
interface Moment extends MeansKey {
  readonly podType: string;
  /** How many times this process had observed. */
  readonly observedTimes: number;
  /** The weights of the experts; if absent, those of the moment. */
  readonly weights?: readonly number[];
}

/** Forecasts a target of the row that was opened last, by what is known now or was known earlier. */
type OpenRow = (target: PredictionTarget, known: Partial<Pick<ForecastOptions, 'weights' | 'asOf'>>) => TargetForecast;

/** Opening a row evaluates its models once, for both targets. */
function createRowOpener(table: SlotTable): (columns: MetricColumns, podType: string, key: ServerKey) => OpenRow {
  const batch: Batch = createBatch(1);
  const mixture: Mixture = createMixture(1);
  batch.count = 1;
  return (columns, podType, key) => {
    const slot = table.find(podType, columns.count);
    batch.servers[0] = key.server;
    batch.podType = key.podType;
    fillStalledQueueBounds(columns, batch.queueBounds);
    const estimates = slot.estimate(columns, batch.servers);
    return (target, known) => slot[target].forecast(estimates[target], batch, { ...known, mixture });
  };
}

/** JSON has no NaN. Inputs are never negative, so -1 marks a missing one. */
function toStorable(value: number): number {
  return Number.isNaN(value) ? -1 : value;
}
