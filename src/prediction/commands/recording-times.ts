/**
 * Dates recordings whose times are ahead of the clock here, or by a clock of their own. The times between requests are kept, because
 * capacity and the history of servers are computed from them.
 */
import type { ReadRow } from '../formats/parse-record.ts';
import { FIRST_EPOCH_MS } from '../schema/milliseconds.ts';
import type { Observation } from '../schema/observation.ts';

/** Collects recordings. A recording is a run of a file, or a file without runs. */
export interface Recordings {
  note(path: string, row: ReadRow): void;
  /** Returns how the noted recordings are dated. All plans of a command share the timeline. */
  plan(nowMs: number, timeline: Timeline): RecordingDates;
}

export interface RecordingDates {
  /** Returns the row with its time as a sample. */
  date(path: string, row: ReadRow): ReadRow;
  /** One sentence for each kind of move. */
  readonly remarks: readonly string[];
}

/** Reserves times for recordings with clocks of their own. */
export interface Timeline {
  /** Reserves a span of this length before all reserved ones, and returns its end, which is now at the latest. */
  take(lengthMs: number, nowMs: number): number;
}

/** The pause between two recordings dated one after the other: longer than a queue is assumed to last between two samples. */
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
  /** When the last answer ended, or had its first token if its end is not known. */
  readonly endMs: number;
}

type Extents = ReadonlyMap<string, Extent>;
/** What is added to the times of each recording, in milliseconds. */
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

/** Returns by how much recordings with times of day are ahead. They share a clock, so all are moved together. */
function measureAhead(extents: Extents, nowMs: number): number {
  return Math.max(0, extents.values().reduce((latest, { lastMs }) => Math.max(latest, lastMs), 0) - nowMs);
}

/** Places recordings without a known time one after the other, so that none seems to be the load of another. */
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
