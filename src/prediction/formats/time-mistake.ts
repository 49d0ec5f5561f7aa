/**
 * Finds times of day that contradict the reported load: overlapping recordings, a wrong unit. In overlapping recordings, each
 * request seems to have the load of the others; in another unit, requests seem never to be under way together. Without a warning,
 * the history of servers and the capacity would be wrong.
 */
import type { ObservationTable } from '../schema/observation-table.ts';
import { findUnitMistake } from './unit-mistake.ts';

/** Returns warnings about the rows: a wrong unit, times of day that contradict loads. */
export function listTableMistakes(table: ObservationTable): string[] {
  return [findUnitMistake(table) ?? [], findTimeMistakes(table)].flat();
}

/** Returns a sentence for each kind of contradiction, with the first server that has it. */
export function findTimeMistakes(table: ObservationTable): string[] {
  const servers = listServers(table);
  const mixed = servers.find(isMixed);
  const stretched = servers.find(isStretched);
  return [
    ...(mixed === undefined
      ? []
      : [
          `Do the times of recordings overlap? Requests that reached the server "${mixed.name}" at the same time name different loads: give each recording times of its own`,
        ]),
    ...(stretched === undefined
      ? []
      : [
          `Are the times of day milliseconds since the epoch? On the server "${stretched.name}", ${format(meanOf(stretched.underWay))} requests are under way on average, but starts are typically ${format(stretched.gapMs / stretched.stayMs)} times as far apart as a request takes`,
        ]),
  ];
}

interface TimedServer {
  readonly name: string;
  /** Sorted times, in milliseconds since the first. */
  readonly atMs: readonly number[];
  /** The waiting and running requests that each request met. */
  readonly underWay: readonly number[];
  /** The median time from the start of a request to its end. */
  readonly stayMs: number;
  /** The median time between one start and the next. */
  readonly gapMs: number;
}

/** With fewer rows, the result is chance. */
const MIN_ROWS = 50;

/** The servers of each run with enough rows, without the rows that have no time. */
function listServers(table: ObservationTable): TimedServer[] {
  const rows = Array.from({ length: table.count }, (_, row) => row).filter((row) => !Number.isNaN(table.atMs[row]!));
  const groups = Map.groupBy(rows, (row) => `${table.run[row]} ${table.server[row]} ${table.podType[row]}`);
  return [...groups.values()].flatMap((group) => (group.length < MIN_ROWS ? [] : [describeServer(table, group)]));
}

/** Assumed for an answer of unknown length. */
const TYPICAL_TOKENS = 200;

function describeServer(table: ObservationTable, rows: number[]): TimedServer {
  rows.sort((a, b) => table.atMs[a]! - table.atMs[b]!);
  const firstMs = table.atMs[rows[0]!]!;
  const atMs = rows.map((row) => table.atMs[row]! - firstMs);
  const stays = rows.map((row) => {
    const tokens = table.outputTokens[row] || TYPICAL_TOKENS;
    return (table.ttftMs[row] || 0) + tokens * (table.tpotMs[row] || 0);
  });
  return {
    name: table.servers[table.server[rows[0]!]!]!,
    atMs,
    underWay: rows.map((row) => table.numRequestWaiting[row]! + table.numRequestRunning[row]!),
    stayMs: medianOf(stays),
    gapMs: medianOf(atMs.slice(1).map((ms, i) => ms - atMs[i]!)),
  };
}

/** Loads less than this share of a request's time apart are nearly the same. */
const CLOSE_SHARE = 1 / 20;
/**
 * Half the mean square between neighbours over the variance (von Neumann 1941): near 0 for a load that changes in small
 * steps, near 1 for unrelated loads.
 */
const MIXED_RATIO = 0.5;
/** The least standard deviation of the load: smaller loads change by a large share with each request. */
const MIN_DEVIATION = 3;

function isMixed({ atMs, underWay, stayMs }: TimedServer): boolean {
  const mean = meanOf(underWay);
  const variance = meanOf(underWay.map((count) => (count - mean) ** 2));
  if (variance < MIN_DEVIATION ** 2) return false;
  const squares = underWay.flatMap((count, i) =>
    i > 0 && atMs[i]! - atMs[i - 1]! < CLOSE_SHARE * stayMs ? (count - underWay[i - 1]!) ** 2 : [],
  );
  return squares.length >= MIN_ROWS && meanOf(squares) / 2 > MIXED_RATIO * variance;
}

/** A log may be a sample of the requests, but hardly only one in this many. */
const STRETCHED_BY = 100;

/** Compares by Little's law: as many requests are under way as start during the time of one request. */
function isStretched({ underWay, stayMs, gapMs }: TimedServer): boolean {
  return stayMs > 0 && gapMs * meanOf(underWay) > STRETCHED_BY * stayMs;
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
}

function format(value: number): string {
  return String(Number(value.toPrecision(2)));
}
