/**
 * Takes reported events: joins and stores them, then learns from them. An observed time is compared with a forecast that is made
 * here when the dispatch is reported. Without a dispatch, it is made before the first row of the same report is learned. If
 * another process received the dispatch, it is made as of that dispatch. Without a trained model, it is made when the row itself
 * is learned. Times are not compared with the answer of a Predict call, which has no request ID.
 */
import type { Store } from '../../database/store.ts';
import type { Forecast } from '../online/forecasts.ts';
import { createPredictColumns, HISTORY_COLUMNS, METRIC_COLUMNS } from '../schema/columns.ts';
import { findTimeFault } from '../schema/milliseconds.ts';
import type { Observation } from '../schema/observation.ts';
import type { EventRefusal, ObservationEvent, ObservationSink } from '../schema/observation-event.ts';
import { PREDICTION_TARGETS } from '../schema/observation-table.ts';
import { createEventPace, type EventPace, PACE_COST } from './event-pace.ts';
import { createLearnFromTime, type LearnFromTimeDependencies, type ReportedTime } from './learn-from-time.ts';
import { type JoinedSample, joinEvents } from './observation-store.ts';
import {
  createRememberedRequests,
  type DispatchedInput,
  type RememberedRequests,
  readHistoryAsOf,
} from './remembered-requests.ts';
import { judgeInReport } from './report-forecast.ts';

export interface ObservationSinkDependencies extends LearnFromTimeDependencies {
  readonly store: Store;
}

export interface LearningSink extends ObservationSink {
  /** Learns from observations that are durable already, between calls. */
  learn(observations: readonly Observation[]): Promise<void>;
}

export function createObservationSink(dependencies: ObservationSinkDependencies): LearningSink {
  const { world, predictor } = dependencies;
  const remembered = createRememberedRequests(predictor);
  const learn = createLearnFromTime(dependencies);
  const pace = createEventPace();

  const { forecastAll, forecastAgain } = createRowForecasts({ predictor, remembered, pace });

  async function learnPart(rows: readonly LearnableRow[], { before, late }: PartForecasts): Promise<void> {
    for (const [index, row] of rows.entries()) {
      await pace(PACE_COST.sample);
      const forecast = judgeTogether(before[index], late[index]) ?? forecastRow(predictor, row);
      for (const time of listTimes(row.observation)) learn(row.observation.targetModel, forecast, time);
    }
  }

  async function learnAll(rows: readonly LearnableRow[]): Promise<void> {
    for (let first = 0; first < rows.length; first += ROWS_TOGETHER) {
      const together = rows.slice(first, first + ROWS_TOGETHER);
      const before = await forecastAll(together);
      for (let start = 0; start < together.length; start += ROWS_A_PART) {
        const part = together.slice(start, start + ROWS_A_PART);
        const beforePart = before.slice(start, start + ROWS_A_PART);
        await learnPart(part, {
          before: beforePart,
          late: start === 0 ? beforePart : await forecastAgain(part, beforePart),
        });
      }
    }
  }

  async function rememberDispatches(events: readonly ObservationEvent[]): Promise<void> {
    for (const event of events) {
      if (event.kind !== 'dispatched') continue;
      await pace(PACE_COST.dispatch);
      remembered.add(event, forecastRequest(predictor, event));
    }
  }

  return {
    learn: (observations) => learnAll(observations.map((observation) => ({ requestId: '', observation }))),
    // The order matters: a sample must find the forecast of its own dispatch, which must not use histories that are newer than
    // it.
    async report(events) {
      const nowMs = world.nowMs();
      const { possible, impossible } = separateImpossible(events);
      const reported = possible.map(({ index, event }) => ({ index, event: readHistoryAsOf(predictor, event, nowMs) }));
      const report = await joinReported(dependencies, reported);
      await pace(PACE_COST.report);
      await rememberDispatches(report.joined);
      await learnAll(listLearnable(report));
      moveHistories(remembered, report, world.nowMs());
      const all = [...impossible, ...report.refusals].sort((one, other) => one.index - other.index);
      return { accepted: events.length - all.length, refusals: all };
    },
  };
}

interface RowForecastDependencies extends Pick<ObservationSinkDependencies, 'predictor'> {
  readonly remembered: RememberedRequests;
  readonly pace: EventPace;
}

function createRowForecasts({ predictor, remembered, pace }: RowForecastDependencies) {
  async function forecastAll(rows: readonly LearnableRow[]): Promise<(Forecast | undefined)[]> {
    const forecasts: (Forecast | undefined)[] = [];
    for (const row of rows) {
      const known = remembered.find(row.requestId)?.forecast;
      if (known === undefined) await pace(row.requestId === '' ? PACE_COST.dispatch : PACE_COST.datedDispatch);
      forecasts.push(known ?? forecastByTrained(predictor, row));
    }
    return forecasts;
  }

  /** Forecasts rows without a dispatch again, by what is known now. The forecast of a dispatch stays the same. */
  async function forecastAgain(rows: readonly LearnableRow[], before: readonly (Forecast | undefined)[]) {
    const forecasts: (Forecast | undefined)[] = [];
    for (const [index, row] of rows.entries())
      forecasts.push(row.requestId === '' ? (await forecastAll([row]))[0] : before[index]);
    return forecasts;
  }

  return { forecastAll, forecastAgain };
}

interface LearnableRow {
  /** Empty for a row without a dispatch. */
  readonly requestId: string;
  readonly observation: Observation;
}

/**
 * Rows that are stored together count as under way together: none of their predictions knew the times of the others. If each were
 * forecast after the row before it was learned, the error and the coverage that are shown would be those of predictions that no
 * caller received, and intervals would move as fast as if each time were known before the next request. More rows than this count
 * as several reports.
 */
const ROWS_TOGETHER = 1000;
/**
 * Rows are learned in parts of this many, so that in a report of hundreds, the experts of later parts know that a server has
 * become slow.
 */
const ROWS_A_PART = 32;

/** The forecasts of each row: before the report was learned, and before its own part was learned (`late`). */
interface PartForecasts {
  readonly before: readonly (Forecast | undefined)[];
  readonly late: readonly (Forecast | undefined)[];
}

/** For a remembered dispatch, both forecasts are the same. */
function judgeTogether(before: Forecast | undefined, late: Forecast | undefined): Forecast | undefined {
  return before === undefined || late === undefined || before === late ? late : judgeInReport(before, late);
}

/** Undefined without a trained model: the prior is fitted to the first times, and forecasts before that would only be wrong. */
function forecastByTrained(
  predictor: ObservationSinkDependencies['predictor'],
  row: LearnableRow,
): Forecast | undefined {
  return predictor.hasModel(row.observation.targetModel) ? forecastRow(predictor, row) : undefined;
}

/**
 * A request whose dispatch is not remembered, since another process got it, is forecast as of that dispatch. A present forecast
 * would know the times of concurrent requests, and its error would be too small to bound those of answers.
 */
function forecastRow(
  predictor: ObservationSinkDependencies['predictor'],
  { requestId, observation }: LearnableRow,
): Forecast {
  return forecastRequest(predictor, observation, requestId === '' ? undefined : observation.atMs);
}

/** Overwritten for each request: no forecast keeps a reference to it. */
const requestColumns = createPredictColumns(1);
requestColumns.count = 1;

function forecastRequest(
  predictor: ObservationSinkDependencies['predictor'],
  { targetModel, input, history }: DispatchedInput,
  sentMs?: number,
): Forecast {
  for (const name of METRIC_COLUMNS) requestColumns[name][0] = input[name];
  HISTORY_COLUMNS.forEach((name, h) => {
    requestColumns[name][0] = history?.[h] ?? Number.NaN;
  });
  return predictor.live(targetModel).forecast(requestColumns, input.podType, Buffer.from(input.serverIp), sentMs);
}

/** An event with its position in the report. */
interface ReportedEvent {
  readonly index: number;
  readonly event: ObservationEvent;
}

interface JoinedReport {
  readonly joined: readonly ObservationEvent[];
  readonly samples: readonly JoinedSample[];
  /** Requests whose end was reported before their dispatch. */
  readonly ended: ReadonlySet<string>;
  readonly refusals: readonly EventRefusal[];
}

async function joinReported(
  { store, world }: ObservationSinkDependencies,
  reported: readonly ReportedEvent[],
): Promise<JoinedReport> {
  const { samples, refusals, ended } = await joinEvents(store, {
    events: reported.map(({ event }) => event),
    sampleIds: await store.makeIds(2 * reported.length),
    nowMs: world.nowMs(),
  });
  const refused = new Set(refusals.map(({ index }) => index));
  return {
    samples,
    ended: new Set(ended),
    refusals: refusals.map(({ index, reason }) => ({ index: reported[index]!.index, reason })),
    joined: reported.filter((_, position) => !refused.has(position)).map(({ event }) => event),
  };
}

/** Whole observations have no dispatch, whether they have the ID of a request or not. */
function listLearnable({ joined, samples }: JoinedReport): LearnableRow[] {
  const whole = new Set(joined.filter(({ kind }) => kind === 'observation').map(({ requestId }) => requestId));
  return samples.map((sample) => (whole.has(sample.requestId) ? { ...sample, requestId: '' } : sample));
}

function moveHistories(
  remembered: RememberedRequests,
  { joined, samples, ended }: JoinedReport,
  knownMs: number,
): void {
  const ttfts = listTtfts(samples);
  for (const event of joined) {
    const { requestId } = event;
    remembered.moveHistory(event, { knownMs, ttftMs: ttfts.get(requestId), hasEnded: ended.has(requestId) });
  }
}

/** The time to first token of each request that has one among these samples. */
function listTtfts(samples: readonly JoinedSample[]): ReadonlyMap<string, number> {
  return new Map(
    samples.flatMap(({ requestId, observation: { ttftMs } }) => (ttftMs === undefined ? [] : [[requestId, ttftMs]])),
  );
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
  return PREDICTION_TARGETS.flatMap((target) => {
    const observedMs = times[target];
    return observedMs === undefined ? [] : [{ target, observedMs, outputTokens }];
  });
}

/** Events of gRPC and JSON were checked as they were read; those that are made in this program were not. */
function findImpossible(event: ObservationEvent): string | undefined {
  return (
    describeFault('ttft_millis', 'ttftMs' in event ? event.ttftMs : undefined) ??
    describeFault('tpot_millis', 'tpotMs' in event ? event.tpotMs : undefined)
  );
}

function describeFault(name: string, value: number | undefined): string | undefined {
  const fault = value === undefined ? undefined : findTimeFault(value);
  return fault === undefined ? undefined : `${name} ${fault}, got ${value}`;
}
