/**
 * Takes reported events: joins and stores them first, then the live state learns from them. The forecast made at the
 * dispatch is remembered, so that an observed time is compared with what was known then.
 */
import { Counter } from 'prom-client';
import type { Store } from '../../database/store.ts';
import { createLabelLimit } from '../../telemetry/label-limit.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { World } from '../../world.ts';
import type { AnsweredRow } from '../live-accuracy/answered-row.ts';
import { createDriftDetector, type DriftCause, type DriftDetector } from '../online/drift.ts';
import type { Forecast } from '../online/live-model.ts';
import { forecastP90Ms } from '../online/live-target.ts';
import type { SwappablePredictor } from '../online/predictor.ts';
import { createPredictColumns, HISTORY_COLUMNS, METRIC_COLUMNS } from '../schema/columns.ts';
import { MAX_MS } from '../schema/milliseconds.ts';
import { readModelVersion } from '../schema/model-name.ts';
import type { Observation } from '../schema/observation.ts';
import type { EventRefusal, ObservationEvent, ObservationSink } from '../schema/observation-event.ts';
import { TARGETS, type Target } from '../schema/observation-table.ts';
import { createEventPace, PACE_COST } from './event-pace.ts';
import { type JoinedSample, joinEvents } from './observation-store.ts';
import { type AskedRequest, createRememberedRequests, readHistoryAsOf } from './remembered-requests.ts';

export interface ObservationSinkDependencies {
  readonly store: Store;
  readonly world: Pick<World, 'nowMs'>;
  readonly metrics: Metrics;
  readonly predictor: SwappablePredictor;
  /** Receives each prediction with what was observed. */
  readonly onAnswered?: (row: AnsweredRow) => void;
  /** Called before the live state of a model learns from a time. */
  readonly beforeObserve?: (targetModel: string, forecast: Forecast, time: Omit<ReportedTime, 'observedMs'>) => void;
  /** Called for a model whose errors have drifted. */
  readonly onDrift: (targetModel: string, alarm: DriftAlarm) => void;
  /** Called for every model with a new observation. */
  readonly onObserved: (targetModel: string) => void;
}

export interface DriftAlarm {
  readonly target: Target;
  readonly cause: DriftCause;
}

/** Callers may report any name of a target model. */
const MAX_LABELS = 256;
const MAX_DETECTORS = 1024;

export interface LearningSink extends ObservationSink {
  /** Learns from observations that are durable already, between calls. */
  learn(observations: readonly Observation[]): Promise<void>;
}

export function createObservationSink(dependencies: ObservationSinkDependencies): LearningSink {
  const { world, predictor } = dependencies;
  const remembered = createRememberedRequests(predictor);
  const learn = createLearner(dependencies);
  const pace = createEventPace();

  function forecastInput({ targetModel, input, history }: AskedRequest): Forecast {
    const columns = createPredictColumns(1);
    columns.count = 1;
    for (const name of METRIC_COLUMNS) columns[name][0] = input[name];
    for (const [h, name] of HISTORY_COLUMNS.entries()) columns[name][0] = history?.[h] ?? Number.NaN;
    return predictor.live(targetModel).forecast(columns, input.podType, Buffer.from(input.serverIp));
  }

  function learnSample({ requestId, observation }: JoinedSample): void {
    learnObservation(observation, remembered.find(requestId)?.forecast ?? forecastInput(observation));
  }

  function learnObservation(observation: Observation, forecast: Forecast): void {
    for (const time of listTimes(observation)) learn(observation.targetModel, forecast, time);
  }

  async function rememberDispatches(events: readonly ObservationEvent[]): Promise<void> {
    for (const event of events) {
      if (event.kind !== 'dispatched') continue;
      await pace(PACE_COST.dispatch);
      remembered.add(event, forecastInput(event));
    }
  }

  async function learnSamples(samples: readonly JoinedSample[]): Promise<void> {
    for (const sample of samples) {
      await pace(PACE_COST.sample);
      learnSample(sample);
    }
  }

  function moveHistories(events: readonly ObservationEvent[]): void {
    const knownMs = world.nowMs();
    for (const event of events) remembered.moveHistory(event, knownMs);
  }

  return {
    async learn(observations) {
      for (const observation of observations) {
        await pace(PACE_COST.sample);
        learnObservation(observation, forecastInput(observation));
      }
    },
    // A sample that is learned must find the forecast of its own dispatch, and histories must not be newer than it.
    async report(events) {
      const { possible, impossible } = separateImpossible(events);
      const reported = possible.map(({ index, event }) => ({ index, event: readHistoryAsOf(predictor, event) }));
      const { joined, samples, refusals } = await joinReported(dependencies, reported);
      await pace(PACE_COST.report);
      await rememberDispatches(joined);
      await learnSamples(samples);
      moveHistories(joined);
      const all = [...impossible, ...refusals].sort((one, other) => one.index - other.index);
      return { accepted: events.length - all.length, refusals: all };
    },
  };
}

/** An event with its position in the report. */
interface ReportedEvent {
  readonly index: number;
  readonly event: ObservationEvent;
}

interface JoinedReport {
  readonly joined: readonly ObservationEvent[];
  readonly samples: readonly JoinedSample[];
  readonly refusals: readonly EventRefusal[];
}

async function joinReported(
  { store, world }: ObservationSinkDependencies,
  reported: readonly ReportedEvent[],
): Promise<JoinedReport> {
  const { samples, refusals } = await joinEvents(store, {
    events: reported.map(({ event }) => event),
    sampleIds: await store.makeIds(2 * reported.length),
    nowMs: world.nowMs(),
  });
  const refused = new Set(refusals.map(({ index }) => index));
  return {
    samples,
    refusals: refusals.map(({ index, reason }) => ({ index: reported[index]!.index, reason })),
    joined: reported.filter((_, position) => !refused.has(position)).map(({ event }) => event),
  };
}

/** Events with times that cannot be true are refused before they are joined. */
function separateImpossible(events: readonly ObservationEvent[]) {
  const possible: ReportedEvent[] = [];
  const impossible: EventRefusal[] = [];
  for (const [index, event] of events.entries()) {
    const reason = findImpossible(event);
    if (reason === undefined) possible.push({ index, event });
    else impossible.push({ index, reason });
  }
  return { possible, impossible };
}

function listTimes({ ttftMs, tpotMs, outputTokens }: Observation): ReportedTime[] {
  const times = { ttft: ttftMs, tpot: tpotMs };
  return TARGETS.flatMap((target) => {
    const observedMs = times[target];
    return observedMs === undefined ? [] : [{ target, observedMs, outputTokens }];
  });
}

function findImpossible(event: ObservationEvent): string | undefined {
  if ('ttftMs' in event && event.ttftMs !== undefined && event.ttftMs > MAX_MS)
    return `ttft_millis must be at most one day, got ${event.ttftMs}`;
  if ('tpotMs' in event && event.tpotMs !== undefined && event.tpotMs > MAX_MS)
    return `tpot_millis must be at most one day, got ${event.tpotMs}`;
  return undefined;
}

interface ReportedTime {
  readonly target: Target;
  readonly observedMs: number;
  readonly outputTokens: number | undefined;
}

/** Moves the live state of a model, what is known of its accuracy, and its drift detectors. */
function createLearner(dependencies: ObservationSinkDependencies) {
  const { metrics, world, predictor, onAnswered, beforeObserve, onDrift, onObserved } = dependencies;
  const observed = new Counter({
    name: 'trivet_prediction_observed_total',
    help: 'Observed times that were learned from.',
    labelNames: ['model', 'target'],
    registers: [metrics],
  });
  const drifts = new Counter({
    name: 'trivet_prediction_drift_alarms_total',
    help: 'Times that a model was found not to fit: its errors have moved (Page–Hinkley on the log residual), or its p90 does not hold.',
    labelNames: ['model', 'target', 'cause'],
    registers: [metrics],
  });
  const tracked = new Map<string, DriftDetector>();
  const labelOf = createLabelLimit(MAX_LABELS);

  /** The last one that was needed stands last; the first is forgotten. */
  function touchDetector(key: string): DriftDetector {
    const drift = tracked.get(key) ?? createDriftDetector();
    tracked.delete(key);
    tracked.set(key, drift);
    if (tracked.size > MAX_DETECTORS) tracked.delete(tracked.keys().next().value!);
    return drift;
  }

  return (model: string, forecast: Forecast, { target, observedMs, outputTokens }: ReportedTime): void => {
    const live = predictor.live(model);
    const { medianMs } = forecast[target];
    const p90Ms = forecastP90Ms(forecast[target]);
    beforeObserve?.(model, forecast, { target, outputTokens });
    live.observe(forecast, target, { observedMs, outputTokens });
    onObserved(model);

    const drift = touchDetector(`${target} ${model}`);
    observed.inc({ model: labelOf(model), target });
    const server = Buffer.from(live.servers.addressOf(forecast.key.server) ?? []).toString();
    const { podType, metrics: asked, modelId } = forecast;
    const version = readModelVersion(modelId, model);
    const answered = { predictedMs: medianMs, p90Ms, observedMs, nowMs: world.nowMs(), metrics: asked };
    onAnswered?.({ targetModel: model, version, podType, server, target, ...answered });
    // Drift is measured on the trees without the live corrections, which would hide it.
    const residual = Math.log(observedMs) - forecast[target].logTrees;
    const cause = drift.observe(Math.max(-2, Math.min(2, residual)), observedMs <= p90Ms);
    if (cause === undefined) return;
    drifts.inc({ model: labelOf(model), target, cause });
    onDrift(model, { target, cause });
  };
}
