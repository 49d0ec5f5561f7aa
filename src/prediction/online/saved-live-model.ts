/**
 * Converts what a live model has learned into the JSON that is saved for a restart, and back. These interfaces are the stored
 * JSON. Older and newer processes read each other's state, so some fields keep a name that the code does not use any more
 * (`state`, `selector`, `trust`, `excessesMs`, `lateness`); the comment at the field has the present one.
 */

import type { PredictionTarget } from '../schema/observation-table.ts';
import { numberOfPodType } from '../schema/pod-type.ts';
import type { SavedPriors } from './early-physics.ts';
import type { SavedExperts } from './expert-weights.ts';
import { NO_CORRECTIONS, type SavedQuantiles } from './intervals/conformal.ts';
import type { RecentRow, RecentRows } from './recent-rows.ts';
import type { ResidualTracker, SavedMeans, SavedResiduals } from './residual-tracker.ts';
import type { TargetPredictor } from './target-predictor.ts';

export interface SavedLiveModel {
  /** The version whose residuals are saved; older releases did not write it. */
  readonly version?: string;
  /** The means of targets without a training are relative to these. Older releases did not write them. */
  readonly priors?: SavedPriors;
  readonly podTypes: readonly string[];
  /** The means of residuals, of the pod types and of all together (`ResidualTracker.save`). */
  readonly state: SavedResiduals;
  readonly recent: readonly SavedRow[];
  readonly slots: readonly SavedSlot<SavedTarget>[];
  /** Generated one by one, since there may be thousands. */
  readonly servers: Iterable<SavedServer>;
}

export interface SavedServer {
  readonly address: string;
  readonly means: SavedMeans;
  readonly slots: readonly SavedSlot<SavedServerTarget>[];
  /** Kept rows that are older than those of `recent`, oldest first. Older releases neither wrote nor read them. */
  readonly rows?: readonly SavedServerRow[];
}

/** The times of one request. */
interface SavedServerRow extends Pick<SavedRow, 'podType' | 'metrics'> {
  readonly times: Readonly<Partial<Record<PredictionTarget, number>>>;
}

export interface SavedTarget {
  /** The weights of the experts. */
  readonly selector: SavedExperts;
  readonly quantiles: SavedQuantiles;
  /** The rolling maximum of log(observed / predicted). Older releases wrote neither it nor the next two. */
  readonly logRatios?: readonly number[];
  /** The rolling maximum of observed - predicted. */
  readonly excessesMs?: readonly number[];
  /** The feedback delay. */
  readonly lateness?: number;
  readonly reportDelay?: number;
  /** The corrections of the learned quantiles, in units of the spread. Older releases did not write it. */
  readonly learnedCorrections?: readonly number[];
}

/** A field is absent when no event of the server has changed it. */
export interface SavedServerTarget {
  /** The weights of the experts at this server. */
  readonly trust?: SavedExperts | undefined;
  readonly corrections?: readonly number[] | undefined;
}

export interface SavedSlot<Saved> extends Record<PredictionTarget, Saved> {
  readonly podType: string;
}

interface SavedRow extends Omit<RecentRow, 'key' | 'metrics' | 'isRestored' | 'before'> {
  readonly address: string;
  /** JSON has no NaN: it writes null for what is missing. */
  readonly metrics: readonly (number | null)[];
}

/** The parts of a live model that learned from reports. Slots are found by the keys under which they were saved. */
export interface LiveModelState {
  readonly podTypes: readonly string[];
  readonly tracker: ResidualTracker;
  readonly recent: RecentRows;
  readonly slots: ReadonlyMap<string, Readonly<Record<PredictionTarget, TargetPredictor>>>;
}

/** How many of the newest rows are saved in one list. Older ones are saved with their servers, which are written in steps. */
const SAVED_ROWS = 512;

export function saveLiveModel(state: LiveModelState): SavedLiveModel {
  const { podTypes, tracker, recent } = state;
  const rows = recent.list();
  return {
    podTypes: [...podTypes],
    state: tracker.save(),
    recent: rows.slice(-SAVED_ROWS).map((row) => saveRow(row, tracker)),
    slots: saveSlots(state, saveTarget),
    servers: saveServers(state, rows.slice(0, -SAVED_ROWS)),
  };
}

function saveRow({ key, metrics, podType, target, observedMs }: RecentRow, tracker: ResidualTracker): SavedRow {
  return { address: addressText(key.server, tracker) ?? '', metrics, podType, target, observedMs };
}

function addressText(server: number, { servers }: ResidualTracker): string | undefined {
  const address = servers.addressOf(server);
  return address && Buffer.from(address).toString();
}

function saveSlots<Saved>({ slots }: LiveModelState, save: (target: TargetPredictor) => Saved): SavedSlot<Saved>[] {
  return [...slots].map(([podType, { ttft, tpot }]) => ({ podType, ttft: save(ttft), tpot: save(tpot) }));
}

function saveTarget({ weights, intervals }: TargetPredictor): SavedTarget {
  const { ofSlot, ofLearned, rollingMaximum, excessMaximum, delays } = intervals;
  const { feedbackDelay: lateness, reportDelay } = delays;
  return {
    selector: weights.save(),
    quantiles: ofSlot.save(),
    logRatios: rollingMaximum.list(),
    excessesMs: excessMaximum.list(),
    lateness,
    reportDelay,
    learnedCorrections: ofLearned.save(),
  };
}

function saveServerTarget({ weights, intervals }: TargetPredictor, server: number): SavedServerTarget {
  return { trust: weights.saveServer(server), corrections: intervals.ofServers.saveServer(server) };
}

function* saveServers(state: LiveModelState, older: readonly RecentRow[]): Generator<SavedServer> {
  // Not by number: between two steps, that of a forgotten server may be given to another one.
  const rowsOf = Map.groupBy(older, ({ key }) => key.address);
  for (const { server, ...means } of listServerMeans(state.tracker)) {
    const slots = saveSlots(state, (target) => saveServerTarget(target, server));
    const rows = rowsOf.get(state.tracker.servers.addressOf(server)) ?? [];
    yield { ...means, slots, rows: saveServerRows(rows) };
  }
}

/** Both times of a request have the same metrics, which are written once. */
function saveServerRows(rows: readonly RecentRow[]): SavedServerRow[] {
  const byMetrics = Map.groupBy(rows, ({ metrics }) => metrics);
  return [...byMetrics].map(([metrics, times]) => {
    return {
      metrics,
      podType: times[0]!.podType,
      times: Object.fromEntries(times.map(({ target, observedMs }) => [target, observedMs])),
    };
  });
}

/** Yields the mean residuals of each server, without its other state. */
export function* listServerMeans(
  tracker: ResidualTracker,
): Generator<Pick<SavedServer, 'address' | 'means'> & { readonly server: number }> {
  for (let server = 0; server < tracker.servers.capacity; server++) {
    const address = addressText(server, tracker);
    if (address !== undefined) yield { server, address, means: tracker.saveServer(server) };
  }
}

/** Every pod type that was saved must be registered by now. Slots that are not open are left out. */
export function restoreLiveModel(saved: SavedLiveModel, state: LiveModelState): void {
  const { podTypes, tracker, recent, slots } = state;
  const { servers } = tracker;
  const readRows = createRowReader(state);
  // Means have the numbers that pod types had in the process that saved. 0 stands for all without a number.
  tracker.restore(saved.state, [0, ...saved.podTypes.map((name) => numberOfPodType(podTypes, name) || undefined)]);
  for (const { podType, ttft, tpot } of saved.slots) {
    restoreTarget(slots.get(podType)?.ttft, ttft);
    restoreTarget(slots.get(podType)?.tpot, tpot);
  }
  const older: RecentRow[] = [];
  for (const { address, means, slots: ofServer, rows = [] } of saved.servers) {
    const server = servers.ensure(Buffer.from(address));
    tracker.restoreServer(server, means);
    for (const { podType, ttft, tpot } of ofServer) {
      restoreServerTarget(slots.get(podType)?.ttft, server, ttft);
      restoreServerTarget(slots.get(podType)?.tpot, server, tpot);
    }
    for (const row of rows) older.push(...readRows(address, row));
  }
  const newest = saved.recent.flatMap(({ address, target, observedMs, ...row }) =>
    readRows(address, { ...row, times: { [target]: observedMs } }),
  );
  replaceRestored(recent, [...older, ...newest]);
}

function createRowReader({ podTypes, tracker: { servers } }: LiveModelState) {
  return (address: string, { metrics, podType, times }: SavedServerRow): RecentRow[] => {
    const server = servers.ensure(Buffer.from(address));
    const key = { server, address: servers.addressOf(server), podType: numberOfPodType(podTypes, podType) };
    const numbers = metrics.map((value) => value ?? Number.NaN);
    return Object.entries(times).map(([target, observedMs]) => {
      return { key, podType, metrics: numbers, target: target as PredictionTarget, observedMs, isRestored: true };
    });
  };
}

/**
 * A process that was cut off from the database restores while it serves. Its own rows stay; those that it had saved are in the
 * state too, and are not added twice.
 */
function replaceRestored(recent: RecentRows, restored: readonly RecentRow[]): void {
  const own = recent.list().filter(({ isRestored }) => !isRestored);
  const known = new Set(own.map(describeRow));
  const times = new Set(own.map(({ observedMs }) => observedMs));
  // Texts of thousands of rows would take most of the time of a restore.
  const isKnown = (row: RecentRow): boolean => times.has(row.observedMs) && known.has(describeRow(row));
  recent.replace([...restored.filter((row) => !isKnown(row)), ...own]);
}

function describeRow({ key, podType, metrics, target, observedMs }: RecentRow): string {
  return JSON.stringify([key.server, podType, metrics, target, observedMs]);
}

function restoreTarget(target: TargetPredictor | undefined, saved: SavedTarget): void {
  if (target === undefined) return;
  // Delays come first: quantiles and weights scale the number of their events by them.
  target.intervals.delays.feedbackDelay = saved.lateness ?? 0;
  target.intervals.delays.reportDelay = saved.reportDelay ?? 0;
  target.intervals.ofSlot.restore(saved.quantiles);
  target.intervals.ofLearned.restore(saved.learnedCorrections ?? NO_CORRECTIONS);
  target.weights.restore(saved.selector);
  target.intervals.rollingMaximum.replace(saved.logRatios ?? []);
  target.intervals.excessMaximum.replace(saved.excessesMs ?? []);
}

function restoreServerTarget(
  target: TargetPredictor | undefined,
  server: number,
  { trust, corrections }: SavedServerTarget,
): void {
  if (trust !== undefined) target?.weights.restoreServer(server, trust);
  if (corrections !== undefined) target?.intervals.ofServers.restoreServer(server, corrections);
}
