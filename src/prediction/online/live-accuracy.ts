/**
 * The errors of answers, by the reports that this process received: for each part of a model by the hour,
 * and for each server lately. For people who look; nothing is corrected by it. Bounded, since callers name models,
 * pod types and servers as they like: beyond the bounds, the names that were reported longest ago are forgotten.
 */
import { median } from '../model/calibration.ts';
import { TARGETS, type Target } from '../schema/observation-table.ts';
import { normalizePodType } from '../schema/pod-type.ts';

const HOUR_MS = 3_600_000;
export const ACCURACY_HOURS = 24;
const MAX_MODELS = 256;
const MAX_SLOTS = 32;
const MAX_SERVERS = 1024;
/** A server's mean is of about its last hundred times. */
const MEMORY = 0.99;
const KEPT_ERRORS = 100;

export interface AnsweredRow {
  readonly targetModel: string;
  readonly podType: string;
  readonly server: string;
  readonly target: Target;
  /** The median that was answered. */
  readonly predictedMs: number;
  readonly p90Ms: number;
  readonly observedMs: number;
  readonly nowMs: number;
}

/** Percent, but for `rows`; with the meanings of the evaluation. */
export interface LiveScores {
  readonly rows: number;
  readonly mape: number;
  readonly wape: number;
  /** Above 0 when predictions are too long. */
  readonly bias: number;
  readonly p90Coverage: number;
}

export interface SlotAccuracy {
  readonly podType: string;
  readonly target: Target;
  /** Of the last 24 hours. */
  readonly scores: LiveScores;
  /** Each hour, oldest first; undefined without reports. */
  readonly hours: readonly (LiveScores | undefined)[];
}

export interface ServerAccuracy {
  readonly server: string;
  readonly lastMs: number;
  /** Of about the last hundred times; a target without reports is absent. */
  readonly targets: Partial<Readonly<Record<Target, ServerScores>>>;
}

export interface ServerScores extends LiveScores {
  /** The median of the errors of the last hundred times. */
  readonly mdape: number;
}

export interface LiveAccuracy {
  observe(row: AnsweredRow): void;
  listModels(): string[];
  listSlots(targetModel: string, nowMs: number): SlotAccuracy[];
  listServers(targetModel: string): ServerAccuracy[];
}

interface Sums {
  rows: number;
  weight: number;
  size: number;
  error: number;
  covered: number;
  missMs: number;
  observedMs: number;
}

interface Hour extends Sums {
  readonly number: number;
}

interface Slot {
  readonly podType: string;
  readonly target: Target;
  readonly hours: Hour[];
}

interface ServerSums extends Sums {
  /** Of the last times, relative to the observed one, in no order. */
  readonly errors: number[];
}

interface Server {
  lastMs: number;
  readonly targets: Record<Target, ServerSums>;
}

interface Tracked {
  readonly slots: Map<string, Slot>;
  readonly servers: Map<string, Server>;
}

export function createLiveAccuracy(): LiveAccuracy {
  const models = new Map<string, Tracked>();
  return {
    observe(row) {
      const model = touch(models, row.targetModel, MAX_MODELS, () => ({ slots: new Map(), servers: new Map() }));
      const podType = normalizePodType(row.podType);
      const slot = touch(model.slots, `${row.target} ${podType}`, MAX_SLOTS, () => ({
        podType,
        target: row.target,
        hours: [],
      }));
      const server = touch(model.servers, row.server, MAX_SERVERS, () => ({
        lastMs: 0,
        targets: { ttft: emptyServerSums(), tpot: emptyServerSums() },
      }));
      server.lastMs = row.nowMs;
      addToServer(server.targets[row.target], row);
      add(openHour(slot.hours, Math.floor(row.nowMs / HOUR_MS)), row, 1);
    },
    listModels: () => [...models.keys()],
    listSlots: (targetModel, nowMs) =>
      [...(models.get(targetModel)?.slots.values() ?? [])].flatMap((slot) => describeSlot(slot, nowMs)),
    listServers: (targetModel) =>
      [...(models.get(targetModel)?.servers ?? [])].map(([server, { lastMs, targets }]) => ({
        server,
        lastMs,
        targets: Object.fromEntries(
          TARGETS.flatMap((target) => (targets[target].rows === 0 ? [] : [[target, toServerScores(targets[target])]])),
        ),
      })),
  };
}

/** Moves the entry to the end of the map, whose beginning is what is forgotten. */
function touch<V>(map: Map<string, V>, key: string, maximum: number, create: () => V): V {
  const value = map.get(key) ?? create();
  map.delete(key);
  map.set(key, value);
  if (map.size > maximum) map.delete(map.keys().next().value!);
  return value;
}

function emptySums(): Sums {
  return { rows: 0, weight: 0, size: 0, error: 0, covered: 0, missMs: 0, observedMs: 0 };
}

function emptyServerSums(): ServerSums {
  return { ...emptySums(), errors: [] };
}

/** Events come in about the order of time: the newest hour is the last, and only so many are kept. */
function openHour(hours: Hour[], number: number): Hour {
  const last = hours.at(-1);
  if (last !== undefined && last.number >= number) return last;
  const hour = { number, ...emptySums() };
  hours.push(hour);
  if (hours.length > ACCURACY_HOURS) hours.shift();
  return hour;
}

function add(sums: Sums, { predictedMs, p90Ms, observedMs }: AnsweredRow, memory: number): void {
  const error = (predictedMs - observedMs) / observedMs;
  sums.rows += 1;
  sums.weight = memory * sums.weight + 1;
  sums.size = memory * sums.size + Math.abs(error);
  sums.error = memory * sums.error + error;
  sums.covered = memory * sums.covered + (observedMs <= p90Ms ? 1 : 0);
  sums.missMs = memory * sums.missMs + Math.abs(predictedMs - observedMs);
  sums.observedMs = memory * sums.observedMs + observedMs;
}

function addToServer(sums: ServerSums, row: AnsweredRow): void {
  sums.errors[sums.rows % KEPT_ERRORS] = Math.abs(row.predictedMs - row.observedMs) / row.observedMs;
  add(sums, row, MEMORY);
}

function toServerScores(sums: ServerSums): ServerScores {
  return { ...toScores(sums), mdape: 100 * median(Float64Array.from(sums.errors).sort()) };
}

function toScores({ rows, weight, size, error, covered, missMs, observedMs }: Sums): LiveScores {
  const percent = 100 / weight;
  const wape = (100 * missMs) / observedMs;
  return { rows, mape: percent * size, wape, bias: percent * error, p90Coverage: percent * covered };
}

function describeSlot({ podType, target, hours }: Slot, nowMs: number): SlotAccuracy[] {
  const first = Math.floor(nowMs / HOUR_MS) - ACCURACY_HOURS + 1;
  const recent = hours.filter(({ number }) => number >= first);
  if (recent.length === 0) return [];
  const all = recent.reduce(
    (sum, hour) => ({
      rows: sum.rows + hour.rows,
      weight: sum.weight + hour.weight,
      size: sum.size + hour.size,
      error: sum.error + hour.error,
      covered: sum.covered + hour.covered,
      missMs: sum.missMs + hour.missMs,
      observedMs: sum.observedMs + hour.observedMs,
    }),
    emptySums(),
  );
  const byHour = Array.from({ length: ACCURACY_HOURS }, (_, index) => {
    const hour = recent.find(({ number }) => number === first + index);
    return hour && toScores(hour);
  });
  return [{ podType, target, scores: toScores(all), hours: byHour }];
}
