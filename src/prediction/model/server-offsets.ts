/**
 * Computes how much slower or faster than its pool each server is, as the logarithm of a factor. A model is trained on times
 * divided by this factor, so that it learns the effect of load and not of hardware; answers are multiplied by it. Offsets of
 * servers are shrunk towards that of their name, those of names towards that of their pod type, and those of pod types towards
 * the pool's, which is 0. The less servers differ, compared with the scatter of single rows, the more: for similar servers they
 * shrink to 0. A server that was not seen has the offset of its name, else that of its pod type, else 0.
 */

import { evaluatePhysics, fitPhysics, type PhysicsModel } from '../physics/physics.ts';
import { clampMs } from '../schema/milliseconds.ts';
import { type ObservationTable, type PredictionTarget, selectRows } from '../schema/observation-table.ts';
import { normalizePodType } from '../schema/pod-type.ts';
import { median } from './calibration.ts';

export interface ServerOffsets {
  /** The offsets of servers by `server_ip`. */
  readonly servers: ReadonlyMap<string, number>;
  /** Offsets by the last part of a `server_ip` like `run/server`, where several servers share it. Model files call them `kinds`. */
  readonly serverNames: ReadonlyMap<string, number>;
  readonly podTypes: ReadonlyMap<string, number>;
}

export const NO_OFFSETS: ServerOffsets = { servers: new Map(), serverNames: new Map(), podTypes: new Map() };

/** The factor by which a row's prediction is multiplied, as a logarithm. */
export function readServerOffset(
  { servers, serverNames, podTypes }: ServerOffsets,
  server: string,
  podType: string,
): number {
  return servers.get(server) ?? serverNames.get(nameOf(server)) ?? podTypes.get(normalizePodType(podType)) ?? 0;
}

/**
 * A server of a recording is called `run/server`, and one of the same name in another recording is most likely of the
 * same kind. A `server_ip` without a slash is a name of its own.
 */
function nameOf(server: string): string {
  return server.slice(server.lastIndexOf('/') + 1);
}

/** Returns the offset of each row's server, for all rows of the table or for `rows`. */
export function readRowOffsets(
  offsets: ServerOffsets,
  table: ObservationTable,
  rows?: ArrayLike<number>,
): Float64Array {
  const known = new Map<number, number>();
  return Float64Array.from({ length: rows?.length ?? table.count }, (_, i) => {
    const row = rows?.[i] ?? i;
    const key = table.server[row]! * table.podTypes.length + table.podType[row]!;
    const offset =
      known.get(key) ??
      readServerOffset(offsets, table.servers[table.server[row]!]!, table.podTypes[table.podType[row]!]!);
    known.set(key, offset);
    return offset;
  });
}

/** Offsets and prices depend on each other: they are fitted alternately this many times. */
const ROUNDS = 10;
/** This many rows are enough for the prices; the offsets are then measured on all rows. */
const MAX_FITTED_ROWS = 3000;
/** The newest share of each server's rows, on which predictions with offsets must have smaller errors. */
const HELD_OUT_SHARE = 0.2;
const MIN_ROWS = 40;

/** Rows that all have this target, in the order of time. */
export interface ObservedRows {
  readonly target: PredictionTarget;
  readonly table: ObservationTable;
  readonly observed: Float64Array;
}

/** Returns no offsets if there are few rows or only one server, or if offsets do not improve the predictions of held-out rows. */
export function fitServerOffsets(rows: ObservedRows): ServerOffsets {
  const { count, server } = rows.table;
  if (count < MIN_ROWS || new Set(server.subarray(0, count)).size < 2) return NO_OFFSETS;
  const { learned, heldOut } = splitByAge(server.subarray(0, count));
  const fit = alternate(pickRows(rows, learned));
  if (!isBetter(fit, pickRows(rows, heldOut))) return NO_OFFSETS;
  return alternate(rows).offsets;
}

/** Holds out the newest rows of each server, not the newest of all: concatenated recordings end with servers that were not seen before. */
function splitByAge(server: ArrayLike<number>): { readonly learned: number[]; readonly heldOut: number[] } {
  const left = new Map<number, number>();
  for (let row = 0; row < server.length; row++) left.set(server[row]!, (left.get(server[row]!) ?? 0) + 1);
  for (const [key, rows] of left) left.set(key, Math.ceil((1 - HELD_OUT_SHARE) * rows));
  const learned: number[] = [];
  const heldOut: number[] = [];
  for (let row = 0; row < server.length; row++) {
    const mine = left.get(server[row]!)!;
    left.set(server[row]!, mine - 1);
    (mine > 0 ? learned : heldOut).push(row);
  }
  return { learned, heldOut };
}

function pickRows({ target, table, observed }: ObservedRows, picked: readonly number[]): ObservedRows {
  return { target, table: selectRows(table, picked), observed: Float64Array.from(picked, (row) => observed[row]!) };
}

interface OffsetFit {
  /** The physics of the pool: fitted without offsets, and (`adjusted`) together with them. */
  readonly alone: PhysicsModel;
  readonly adjusted: PhysicsModel;
  readonly offsets: ServerOffsets;
}

function isBetter({ alone, adjusted, offsets }: OffsetFit, heldOut: ObservedRows): boolean {
  const offset = readRowOffsets(offsets, heldOut.table);
  const withOffsets = logRatios(adjusted, heldOut);
  const without = logRatios(alone, heldOut);
  let gain = 0;
  for (let row = 0; row < offset.length; row++)
    gain += Math.abs(without[row]!) - Math.abs(withOffsets[row]! - offset[row]!);
  return gain > 0;
}

function alternate(rows: ObservedRows): OffsetFit {
  const step = Math.max(1, rows.table.count / MAX_FITTED_ROWS);
  const sample = pickRows(
    rows,
    Array.from({ length: Math.floor(rows.table.count / step) }, (_, i) => Math.floor(i * step)),
  );
  const alone = fitPhysics(rows.target, sample.table, sample.observed);
  let adjusted = alone;
  for (let round = 0; round < ROUNDS; round++) {
    const offset = readRowOffsets(measureServerOffsets(sample.table, logRatios(adjusted, sample)), sample.table);
    const observed = sample.observed.map((value, i) => value * Math.exp(-offset[i]!));
    const start = { coefficients: adjusted.coefficients, rounds: 1 };
    adjusted = fitPhysics(rows.target, sample.table, observed, { start });
  }
  return { alone, adjusted, offsets: measureServerOffsets(rows.table, logRatios(adjusted, rows)) };
}

function logRatios(physics: PhysicsModel, { table, observed }: ObservedRows): Float64Array {
  const predicted = new Float64Array(table.count);
  evaluatePhysics(physics, table, table.count, predicted);
  // Physics predicts infinity for an infinite load, and the offset of such a row would be wrong for every other load.
  return predicted.map((value, row) => Math.log(observed[row]! / clampMs(value)));
}

/** Measures the offsets of pod types relative to the pool, of names relative to their pod type, and of servers relative to their name. */
export function measureServerOffsets(table: ObservationTable, ratios: Float64Array): ServerOffsets {
  const rows = Array.from({ length: table.count }, (_, row) => row);
  const pool = median(ratios.slice().sort());
  const left = ratios.map((ratio) => ratio - pool);
  const nameOfServer = listNames(table.servers);
  const podTypeOf = (row: number) => normalizePodType(table.podTypes[table.podType[row]!]!);
  const nameOfRow = (row: number) => nameOfServer[table.server[row]!]!;
  const podTypes = takeOffsets(rows, left, podTypeOf);
  const ofNames = takeOffsets(rows, left, nameOfRow);
  const ofServers = takeOffsets(rows, left, (row) => table.servers[table.server[row]!]!);
  const servers = new Map<string, number>();
  const serverNames = new Map<string, number>();
  for (let row = 0; row < table.count; row++) {
    const server = table.servers[table.server[row]!]!;
    if (servers.has(server)) continue;
    const name = nameOfRow(row);
    const ofName = podTypes.get(podTypeOf(row))! + ofNames.get(name)!;
    if (ofNames.size > 1 && !serverNames.has(name)) serverNames.set(name, ofName);
    servers.set(server, ofName + ofServers.get(server)!);
  }
  return { servers, serverNames, podTypes };
}

/** The name of each server. All get the same one if each would have a name of its own, which adds no information. */
function listNames(servers: readonly string[]): string[] {
  const names = servers.map(nameOf);
  return new Set(names).size < names.length ? names : servers.map(() => '');
}

/** Measures the offsets of the groups, and subtracts them from the rows in `left`. */
function takeOffsets(
  rows: readonly number[],
  left: Float64Array,
  groupOf: (row: number) => string,
): Map<string, number> {
  const offsets = shrinkGroups(Map.groupBy(rows, groupOf), (row) => left[row]!);
  for (const row of rows) left[row]! -= offsets.get(groupOf(row))!;
  return offsets;
}

/** The variance of a median of normal values is this many times that of their mean. */
const MEDIAN_VARIANCE = Math.PI / 2;
/** A deviation is clipped at this (a factor of e), so that a few outliers do not raise the variance of all. */
const MAX_DEVIATION = 1;

/**
 * The median of each group, times the empirical Bayes weight V / (V + v): V is the variance between groups, and v that of the
 * group's median. With one group V is 0.
 */
function shrinkGroups<K>(groups: ReadonlyMap<K, readonly number[]>, read: (row: number) => number): Map<K, number> {
  const medians = new Map<K, number>();
  let within = 0;
  let rows = 0;
  for (const [key, members] of groups) {
    const middle = median(Float64Array.from(members, read).sort());
    medians.set(key, middle);
    for (const row of members) within += Math.min(MAX_DEVIATION, Math.abs(read(row) - middle)) ** 2;
    rows += members.length;
  }
  const scatter = (MEDIAN_VARIANCE * within) / Math.max(1, rows - groups.size);
  let between = 0;
  for (const [key, members] of groups) between += (members.length / rows) * medians.get(key)! ** 2;
  between = groups.size < 2 ? 0 : Math.max(0, between - (scatter * groups.size) / rows);
  for (const [key, members] of groups)
    medians.set(key, between === 0 ? 0 : (medians.get(key)! * between) / (between + scatter / members.length));
  return medians;
}
