/**
 * Reads the live accuracy in the form that pages, API, commands and metrics show. All of it comes from the store, so every
 * process shows the same, seconds after the reports. A *part* of a model is one of its pod types or one of its servers. Pages
 * show the last 24 hours (`add-up-day.ts`); the formulas of the errors are in `accuracy-sums.ts`.
 */
import type { Store } from '../../database/store.ts';
import { PREDICTION_TARGETS, type PredictionTarget } from '../schema/observation-table.ts';
import {
  type ErrorCount,
  type ErrorPart,
  listErrorCounts,
  listErrorParts,
  listModelSums,
  listPodTypeSums,
  listServerSums,
  listSumsOfServer,
  type PartSums,
} from './accuracy-read-store.ts';
import { createSums, type LiveScores, mergeSums, toScores } from './accuracy-sums.ts';
import { ACCURACY_HOURS, addUpDay } from './add-up-day.ts';
import { ERROR_AXES, type ErrorAxisName, RATIO_EDGES } from './error-bins.ts';

const HOUR_MS = 3_600_000;

export interface PodTypeAccuracy {
  readonly podType: string;
  readonly target: PredictionTarget;
  /** The scores of the last 24 hours. */
  readonly scores: LiveScores;
  /** Each hour, oldest first; undefined without reports. */
  readonly hours: readonly (LiveScores | undefined)[];
}

export interface ServerAccuracy {
  readonly server: string;
  readonly lastMs: number;
  /** A target without reports is absent. */
  readonly targets: Partial<Readonly<Record<PredictionTarget, LiveScores>>>;
}

export interface ModelQuery {
  readonly targetModel: string;
  readonly nowMs: number;
}

/** Each pod type and target of a model, over the last 24 hours. */
export async function readPodTypeAccuracy(
  store: Store,
  { targetModel, nowMs }: ModelQuery,
): Promise<PodTypeAccuracy[]> {
  const firstMs = (Math.floor(nowMs / HOUR_MS) - ACCURACY_HOURS + 1) * HOUR_MS;
  const all = await listPodTypeSums(store, { targetModel, fromMs: firstMs, stepMs: HOUR_MS });
  return groupByPart(all).flatMap((own) => {
    const scores = scoreTogether(own);
    if (scores === undefined) return [];
    const hours = Array.from({ length: ACCURACY_HOURS }, (_, hour) =>
      scoreTogether(own.filter(({ startMs }) => startMs === firstMs + hour * HOUR_MS)),
    );
    return [{ podType: own[0]!.part, target: own[0]!.target, scores, hours }];
  });
}

/** Groups sums by part, with the targets of a part in their order. */
function groupByPart(parts: readonly PartSums[]): PartSums[][] {
  const position = ({ target }: PartSums) => PREDICTION_TARGETS.indexOf(target);
  const groups = [...Map.groupBy(parts, ({ part, target }) => `${target} ${part}`).values()];
  return groups.sort(
    ([one], [other]) =>
      Buffer.compare(Buffer.from(one!.part), Buffer.from(other!.part)) || position(one!) - position(other!),
  );
}

/** Undefined without any time. */
function scoreTogether(parts: readonly PartSums[]): LiveScores | undefined {
  const sums = createSums();
  for (const part of parts) mergeSums(sums, part.sums);
  return toScores(sums);
}

/** Each server of a model, over the last 24 hours. */
export async function readServerAccuracy(store: Store, { targetModel, nowMs }: ModelQuery): Promise<ServerAccuracy[]> {
  const all = await addUpDay(nowMs, (range) => listServerSums(store, targetModel, range));
  return [...Map.groupBy(all, ({ part }) => part)].map(([server, own]) => ({
    server,
    lastMs: Math.max(...own.map(({ lastMs }) => lastMs)),
    targets: scoreTargets(own),
  }));
}

function scoreTargets(parts: readonly PartSums[]): ServerAccuracy['targets'] {
  return Object.fromEntries(
    PREDICTION_TARGETS.flatMap((target) => {
      const scores = scoreTogether(parts.filter((part) => part.target === target));
      return scores === undefined ? [] : [[target, scores]];
    }),
  );
}

export interface VersionAccuracy {
  readonly targetModel: string;
  /** 0 is the prior. */
  readonly version: number;
  readonly targets: ServerAccuracy['targets'];
}

/** Each version of every model that predicted in the last 24 hours. */
export async function readVersionAccuracy(store: Store, nowMs: number): Promise<VersionAccuracy[]> {
  const all = await addUpDay(nowMs, (range) => listModelSums(store, range));
  const versions = Map.groupBy(all, ({ targetModel, version }) => JSON.stringify([targetModel, version]));
  return [...versions.values()].map((own) => {
    const { targetModel, version } = own[0]!;
    return { targetModel, version, targets: scoreTargets(own) };
  });
}

export interface AccuracyPoint {
  /** The step begins at this time. */
  readonly startMs: number;
  /** The version that predicted, 0 is the prior; −1 for a server, whose sums are over all versions. */
  readonly version: number;
  readonly scores: LiveScores;
}

export interface AccuracySeries {
  /** A pod type or a server. */
  readonly part: string;
  readonly target: PredictionTarget;
  /** Oldest first; a step with several versions has several points, and one without reports has none. */
  readonly points: readonly AccuracyPoint[];
}

export interface SeriesQuery {
  readonly targetModel: string;
  readonly fromMs: number;
  /**
   * Periods that begin in one step are one point. Stored periods are of five minutes (pod types for 12 hours, servers for one),
   * then an hour (7 days and one day), then six hours (up to 30 days): shorter steps leave gaps.
   */
  readonly stepMs: number;
}

/** One for each pod type and target. */
export async function readAccuracyOverTime(store: Store, query: SeriesQuery): Promise<AccuracySeries[]> {
  return toSeries(await listPodTypeSums(store, query));
}

/** One for each target of this server. */
export async function readServerOverTime(store: Store, query: SeriesQuery, server: string): Promise<AccuracySeries[]> {
  return toSeries(await listSumsOfServer(store, query, server));
}

function toSeries(parts: readonly PartSums[]): AccuracySeries[] {
  return groupByPart(parts).map((own) => ({
    part: own[0]!.part,
    target: own[0]!.target,
    points: own.flatMap(({ startMs, version, sums }) => {
      const scores = toScores(sums);
      return scores === undefined ? [] : [{ startMs, version, scores }];
    }),
  }));
}

export interface ErrorsByLoad {
  /** The limits between the ranges of the axis. */
  readonly edges: readonly number[];
  /** The limits between the ranges of observed divided by predicted time. */
  readonly ratioEdges: readonly number[];
  /** Only ranges with at least one time. */
  readonly counts: readonly ErrorCount[];
}

export interface ErrorsQuery {
  readonly targetModel: string;
  readonly target: PredictionTarget;
  /** `predicted_ms` for predicted against observed times, or a load. */
  readonly axis: ErrorAxisName;
  /** Every version when left out. */
  readonly version?: number | undefined;
  /** A pod type, or a server (only with the axis `predicted_ms`); all when left out. */
  readonly part?: ErrorPart | undefined;
  readonly fromMs: number;
}

/** How observed times compared with predicted ones, by the range of a load. */
export async function readErrorsByLoad(store: Store, { axis, ...query }: ErrorsQuery): Promise<ErrorsByLoad> {
  const position = ERROR_AXES.findIndex(({ name }) => name === axis);
  const counts = await listErrorCounts(store, { ...query, axis: position });
  return { edges: ERROR_AXES[position]!.edges, ratioEdges: RATIO_EDGES, counts };
}

/** The pod types and servers whose errors can be read. */
export async function readErrorParts(
  store: Store,
  query: Pick<ErrorsQuery, 'targetModel' | 'target' | 'fromMs'>,
): Promise<ErrorPart[]> {
  return await listErrorParts(store, query);
}
