/**
 * Finds times of day that contradict the load beside them: overlapping recordings, a wrong unit. In overlapping recordings, each
 * request seems to have the load of the others; in another unit, requests seem never to be under way together. What is learned
 * of a server's past, and the capacity, would be wrong without a word.
 */
import type { ObservationTable } from '../schema/observation-table.ts';
import { findUnitMistake } from './unit-mistake.ts';

/** What a reader must know of these rows: a wrong unit, times of day that contradict loads. */
export function listTableMistakes(table: ObservationTable): string[] {
  return [findUnitMistake(table) ?? [], findTimeMistakes(table)].flat();
}

/** A sentence for each contradiction, with the server that shows it first. */
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
  /** Times in their order, in milliseconds since the first. */
  readonly atMs: readonly number[];
  /** Requests that each found waiting or running. */
  readonly underWay: readonly number[];
  /** How long a request typically took. */
  readonly stayMs: number;
  /** Between one start and the next, typically. */
  readonly gapMs: number;
}

/** The result is chance with fewer rows. */
const MIN_ROWS = 50;

/** The servers of each run with enough rows, without the rows that have no time. */
function listServers(table: ObservationTable): TimedServer[] {
  const rows = Array.from({ length: table.count }, (_, row) => row).filter((row) => !Number.isNaN(table.atMs[row]!));
  const groups = Map.groupBy(rows, (row) => `${table.run[row]} ${table.server[row]} ${table.podType[row]}`);
  return [...groups.values()].flatMap((group) => (group.length < MIN_ROWS ? [] : [describeServer(table, group)]));
}

/** Tokens of an answer whose length is not known. */
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

/** Loads at moments this much closer than a request takes are nearly the same. */
const CLOSE_SHARE = 1 / 20;
/**
 * Half the mean square between neighbours over the variance (von Neumann 1941): near 0 for a load that moves in small
 * steps, near 1 for loads that have nothing to do with each other.
 */
const MIXED_RATIO = 0.5;
/** Smaller loads change by a large share with each request. */
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

/** A log may be a sample of the requests, but hardly only one of this many. */
const STRETCHED_BY = 100;

/** Compares by Little's law: requests under way are those that start while one stays. */
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
