/**
 * Collects in memory what this process adds to the live accuracy, until it is written. A row of the store belongs to one process
 * and holds its whole sums of a period, so writing it again changes nothing. Bounded, since callers name models, pod types and
 * servers as they like: beyond the bounds, reports of new names are not counted until the next period.
 */
import type { PredictionTarget } from '../schema/observation-table.ts';
import { normalizePodType } from '../schema/pod-type.ts';
import { type AccuracySums, addObservation, createSums } from './accuracy-sums.ts';
import type { AnsweredRow } from './answered-row.ts';
import { findAxisRanges, findRatio, RATIO_EDGES } from './error-bins.ts';

const MINUTE_MS = 60_000;
export const SUMS_MINUTES = 5;
export const COUNTS_MINUTES = 60;
/** Periods that ended longer ago than this are merged with those of other processes, and no longer written. */
export const WRITTEN_UNTIL_MS = 30 * MINUTE_MS;
const MAX_SUMS = 4096;
const MAX_COUNTS = 20_000;
/** More ranges than any axis has. */
const MAX_RANGES = 64;

/** `pod type`: sums over all servers of a pod type. `server`: sums over all pod types and versions of a server. */
export type SumsKind = 'pod type' | 'server';
/** The version of sums over all versions. */
export const EVERY_VERSION = -1;

export interface SumsCell {
  readonly targetModel: string;
  readonly startMs: number;
  readonly kind: SumsKind;
  /** The name of the pod type or of the server. */
  readonly part: string;
  readonly target: PredictionTarget;
  readonly version: number;
  lastMs: number;
  readonly sums: AccuracySums;
}

/** How many observations had this error in this range of an axis. */
export interface CountCell {
  readonly targetModel: string;
  readonly startMs: number;
  readonly kind: SumsKind;
  readonly part: string;
  readonly target: PredictionTarget;
  readonly version: number;
  readonly axis: number;
  readonly range: number;
  readonly ratio: number;
  times: number;
}

export interface AccuracyRecorder {
  observe(row: AnsweredRow): void;
  /** The sums by pod type, and by server. */
  readonly sums: readonly ChangedCells<SumsCell>[];
  readonly counts: readonly ChangedCells<CountCell>[];
  /** Forgets periods that are long over by a trusted clock, which other processes merge from then on. */
  forgetPast(nowMs: number): void;
}

export function createAccuracyRecorder(): AccuracyRecorder {
  const sums: Readonly<Record<SumsKind, Periods<SumsCell>>> = {
    'pod type': createPeriods({ minutes: SUMS_MINUTES, maximum: MAX_SUMS }),
    server: createPeriods({ minutes: SUMS_MINUTES, maximum: MAX_SUMS }),
  };
  const counts: Readonly<Record<SumsKind, Periods<CountCell>>> = {
    'pod type': createPeriods({ minutes: COUNTS_MINUTES, maximum: MAX_COUNTS }),
    server: createPeriods({ minutes: COUNTS_MINUTES, maximum: MAX_COUNTS }),
  };

  function addToPart(row: AnsweredRow, kind: SumsKind, name: string): void {
    const { targetModel, target, nowMs } = row;
    const cell = sums[kind].openPart(nowMs, name)?.open(0, (startMs) => {
      const { part, version } = findPart(row, kind);
      return { targetModel, startMs, kind, part, target, version, lastMs: nowMs, sums: createSums() };
    });
    if (cell === undefined) return;
    cell.lastMs = nowMs;
    addObservation(cell.sums, row);
  }

  function countError(row: AnsweredRow, kind: SumsKind, name: string, axes: readonly number[]): void {
    const cells = counts[kind].openPart(row.nowMs, name);
    if (cells === undefined) return;
    const ratio = findRatio(row);
    for (const [axis, range] of axes.entries()) {
      const position = (axis * MAX_RANGES + range) * (RATIO_EDGES.length + 1) + ratio;
      const cell = cells.open(position, (startMs) => {
        const { targetModel, target } = row;
        return { targetModel, startMs, kind, ...findPart(row, kind), target, axis, range, ratio, times: 0 };
      });
      if (cell !== undefined) cell.times++;
    }
  }

  function observePart(row: AnsweredRow, kind: SumsKind, axes: readonly number[]): void {
    const { part, version } = findPart(row, kind);
    const name = `${row.targetModel}\n${part}\n${row.target}${version}`;
    addToPart(row, kind, name);
    countError(row, kind, name, axes);
  }

  return {
    sums: [sums['pod type'], sums.server],
    counts: [counts['pod type'], counts.server],
    observe(row) {
      const axes = findAxisRanges(row);
      observePart(row, 'pod type', axes);
      // There are many servers: their errors are counted by predicted time only.
      if (row.server !== '') observePart(row, 'server', axes.slice(0, 1));
    },
    forgetPast(nowMs) {
      for (const periods of [...Object.values(sums), ...Object.values(counts)]) periods.forgetPast(nowMs);
    },
  };
}

function findPart(row: AnsweredRow, kind: SumsKind): { readonly part: string; readonly version: number } {
  if (kind === 'server') return { part: row.server, version: EVERY_VERSION };
  return { part: normalizePodType(row.podType), version: row.version };
}

/** Cells that changed since they were written. */
export interface ChangedCells<Cell> {
  readonly count: number;
  /** Takes at most `limit` cells, those that have waited longest. */
  take(limit: number): Cell[];
  /** Must be called with cells that could not be written. */
  putBack(cells: readonly Cell[]): void;
}

interface Periods<Cell> extends ChangedCells<Cell> {
  /** The cells of this name in the period of `nowMs`. Undefined for a new name when the period is full. */
  openPart(nowMs: number, name: string): PartCells<Cell> | undefined;
  forgetPast(nowMs: number): void;
}

/** The cells of one part, target and version in one period, by a number: a report counts in several of them. */
interface PartCells<Cell> {
  /** The cell at this position, marked as changed. Undefined for a new position when the period is full. */
  open(position: number, create: (startMs: number) => Cell): Cell | undefined;
}

interface Period<Cell> {
  readonly startMs: number;
  /** The number of cells in all parts. */
  size: number;
  readonly parts: Map<string, PartCells<Cell>>;
}

interface PeriodLimits {
  readonly minutes: number;
  /** The most cells in one period. */
  readonly maximum: number;
}

function createPeriods<Cell extends { readonly startMs: number }>({ minutes, maximum }: PeriodLimits): Periods<Cell> {
  const lengthMs = minutes * MINUTE_MS;
  const periods = new Map<number, Period<Cell>>();
  const changed = new Set<Cell>();

  function openPeriod(startMs: number): Period<Cell> {
    const period = periods.get(startMs) ?? { startMs, size: 0, parts: new Map<string, PartCells<Cell>>() };
    periods.set(startMs, period);
    return period;
  }

  function createPart(period: Period<Cell>): PartCells<Cell> {
    const cells = new Map<number, Cell>();
    return {
      open(position, create) {
        const known = cells.get(position);
        if (known === undefined && period.size >= maximum) return undefined;
        const cell = known ?? create(period.startMs);
        if (known === undefined) {
          cells.set(position, cell);
          period.size += 1;
        }
        changed.add(cell);
        return cell;
      },
    };
  }

  return {
    get count() {
      return changed.size;
    },
    openPart(nowMs, name) {
      const period = openPeriod(nowMs - (nowMs % lengthMs));
      const known = period.parts.get(name);
      if (known !== undefined || period.size >= maximum) return known;
      const part = createPart(period);
      period.parts.set(name, part);
      return part;
    },
    take(limit) {
      const taken = [...changed.values().take(limit)];
      for (const cell of taken) changed.delete(cell);
      return taken;
    },
    putBack(cells) {
      for (const cell of cells) changed.add(cell);
    },
    forgetPast(nowMs) {
      const isPast = (startMs: number): boolean => startMs + lengthMs + WRITTEN_UNTIL_MS < nowMs;
      for (const cell of changed) if (isPast(cell.startMs)) changed.delete(cell);
      // Periods are kept until then: after a clock is set back, a period would begin again at 0, and overwrite the stored sums.
      for (const startMs of periods.keys()) if (isPast(startMs)) periods.delete(startMs);
    },
  };
}
