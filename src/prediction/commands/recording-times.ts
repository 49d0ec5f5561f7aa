/**
 * Dates recordings whose times are ahead of the clock here, or on a clock of their own. The times between requests stay: capacity
 * and the past of a server are learned from them.
 */
import type { ReadRow } from '../formats/parse-record.ts';
import { FIRST_EPOCH_MS } from '../schema/milliseconds.ts';
import type { Observation } from '../schema/observation.ts';

/** A recording is a run of a file, or a file without runs. */
export interface Recordings {
  note(path: string, row: ReadRow): void;
  /** Returns how the recordings that were noted are dated. All plans of a command share the timeline. */
  plan(nowMs: number, timeline: Timeline): RecordingDates;
}

export interface RecordingDates {
  /** Returns the row with the time that it has as a sample. */
  date(path: string, row: ReadRow): ReadRow;
  /** A sentence for each way in which recordings were moved. */
  readonly remarks: readonly string[];
}

/** The places of recordings with clocks of their own. */
export interface Timeline {
  /** Takes a place of this length before all that are taken, and returns its end, which is now at the latest. */
  take(lengthMs: number, nowMs: number): number;
}

/** Between two recordings that are dated one after the other: longer than a queue is taken to last between two samples. */
const PAUSE_MS = 60_000;

export function createTimeline(): Timeline {
  let freeMs = Number.POSITIVE_INFINITY;
  return {
    take(lengthMs, nowMs) {
      const endMs = Math.min(freeMs, nowMs);
      freeMs = endMs - lengthMs - PAUSE_MS;
      return endMs;
    },
  };
}

interface Extent {
  readonly firstMs: number;
  readonly lastMs: number;
  /** When the last answer ended, or began where its end is not known. */
  readonly endMs: number;
}

type Extents = ReadonlyMap<string, Extent>;
/** By how much the times of each recording are moved. */
type Shifts = ReadonlyMap<string, number>;

export function createRecordings(): Recordings {
  const extents = new Map<string, Extent>();
  return {
    note(path, row) {
      const own = 'observation' in row ? measure(row.observation) : undefined;
      if (own === undefined) return;
      const name = nameRecording(path, row);
      const known = extents.get(name);
      extents.set(name, known === undefined ? own : unite(known, own));
    },
    plan(nowMs, timeline) {
      const aheadMs = measureAhead(extents, nowMs);
      const ownShifts = placeOwnClocks(extents, (lengthMs) => timeline.take(lengthMs, nowMs));
      return {
        remarks: listRemarks(aheadMs, ownShifts.size),
        date: (path, row) => move(row, ownShifts.get(nameRecording(path, row)) ?? -aheadMs),
      };
    },
  };
}

function nameRecording(path: string, row: ReadRow): string {
  return `${path}\0${('observation' in row && row.observation.run) || ''}`;
}

function measure({ atMs, ttftMs = 0, endMs }: Observation): Extent | undefined {
  return atMs === undefined ? undefined : { firstMs: atMs, lastMs: atMs, endMs: endMs ?? atMs + ttftMs };
}

function unite(a: Extent, b: Extent): Extent {
  return {
    firstMs: Math.min(a.firstMs, b.firstMs),
    lastMs: Math.max(a.lastMs, b.lastMs),
    endMs: Math.max(a.endMs, b.endMs),
  };
}

function move(row: ReadRow, byMs: number): ReadRow {
  if (byMs === 0 || !('observation' in row) || row.observation.atMs === undefined) return row;
  return { ...row, observation: { ...row.observation, atMs: row.observation.atMs + byMs } };
}

/** Recordings with times of day share a clock, so all of them are moved together. */
function measureAhead(extents: Extents, nowMs: number): number {
  return Math.max(0, extents.values().reduce((latest, { lastMs }) => Math.max(latest, lastMs), 0) - nowMs);
}

/** Nothing says when they were. One after the other, in their order, none seems to be the load of another. */
function placeOwnClocks(extents: Extents, take: (lengthMs: number) => number): Shifts {
  const shifts = new Map<string, number>();
  for (const [name, { firstMs, lastMs, endMs }] of [...extents].reverse())
    if (lastMs < FIRST_EPOCH_MS) shifts.set(name, take(endMs - firstMs) - endMs);
  return shifts;
}

function listRemarks(aheadMs: number, ownClocks: number): string[] {
  const remarks: string[] = [];
  if (aheadMs > 0)
    remarks.push(
      `Times are up to ${formatSeconds(aheadMs)} s ahead of the clock here: all move back, the latest to now`,
    );
  if (ownClocks > 0)
    remarks.push(
      `Recordings with a clock of their own: ${ownClocks}. They are dated one after the other, up to now. Observe all of them in one command, and not beside live requests, or they overlap`,
    );
  return remarks;
}

function formatSeconds(ms: number): string {
  return String(Number((ms / 1000).toPrecision(3)));
}
