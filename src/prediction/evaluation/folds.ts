/** Splits rows into those that a protocol trains on and those that it tests (held-out rows). */
import { Failure } from '../../errors.ts';
import { listRows, type ObservationTable } from '../schema/observation-table.ts';
import { createRandom } from '../simulator/random-draws.ts';

/** The indexes of rows. */
export interface Fold {
  readonly train: readonly number[];
  readonly test: readonly number[];
}

const SEEDS = [1, 2, 3, 4, 5];

type FoldedProtocol = 'random' | 'leave-load-out' | 'leave-server-out';

export const FOLDS_OF: Readonly<Record<FoldedProtocol, (table: ObservationTable) => Fold[]>> = {
  random: (table) => SEEDS.map((seed) => splitRandomly(table.count, seed)),
  'leave-load-out': (table) => leaveGroupsOut(table, labelLoads(table)),
  'leave-server-out': leaveServersOut,
};

/** Trains on the first 70 % of each run and tests on the rest; a source without runs is one run. */
export interface TimeSplit extends Fold {
  /** Returns when the first test row of this run was requested. */
  readonly cutMsOfRun: (run: number) => number;
}

export function splitInTime(table: ObservationTable): TimeSplit {
  const train: number[] = [];
  const test: number[] = [];
  const cutMs = new Map<number, number>();
  for (const [run, rows] of Map.groupBy(listRows(table), (row) => table.run[row]!)) {
    const cut = Math.floor(0.7 * rows.length);
    // Not push(...rows): a recording may have more rows than a call may have arguments.
    for (const [i, row] of rows.entries()) (i < cut ? train : test).push(row);
    cutMs.set(run, table.atMs[rows[cut]!]!);
  }
  return { train, test: inOrder(table, test), cutMsOfRun: (run) => cutMs.get(run)! };
}

function inOrder(table: ObservationTable, rows: readonly number[]): number[] {
  const chosen = new Set(rows);
  return listRows(table).filter((row) => chosen.has(row));
}

function splitRandomly(count: number, seed: number): Fold {
  const random = createRandom(seed);
  const rows = Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [rows[i], rows[j]] = [rows[j]!, rows[i]!];
  }
  const cut = Math.max(1, Math.round(count / 10));
  // Rows are learned in the order of time; only which rows are held out is random.
  return { test: rows.slice(0, cut), train: rows.slice(cut).sort((a, b) => a - b) };
}

const LOAD_BANDS = 5;

/** Labels rows with one of five bands of equal size, by the requests at the server. */
function labelLoads(table: ObservationTable): number[] {
  const loads = Array.from(
    { length: table.count },
    (_, i) => table.numRequestWaiting[i]! + table.numRequestRunning[i]!,
  );
  const sorted = Float64Array.from(loads).sort();
  const edges = Array.from(
    { length: LOAD_BANDS - 1 },
    (_, b) => sorted[Math.floor(((b + 1) * table.count) / LOAD_BANDS)]!,
  );
  return loads.map((load) => edges.filter((edge) => load >= edge).length);
}

function leaveGroupsOut(table: ObservationTable, labels: ArrayLike<number>): Fold[] {
  const rows = Array.from({ length: table.count }, (_, i) => i);
  const groups = [...new Set(Array.from(labels))].sort((a, b) => a - b);
  if (groups.length < 2) throw new Failure('invalid', 'Cannot leave a load out: every row has the same');
  return groups.map((group) => ({
    train: rows.filter((row) => labels[row] !== group),
    test: rows.filter((row) => labels[row] === group),
  }));
}

const MAX_SERVER_FOLDS = 12;

/** Makes one fold for each server; with many servers, several are left out together. */
function leaveServersOut(table: ObservationTable): Fold[] {
  const servers = new Set(table.server.subarray(0, table.count));
  if (servers.size < 2)
    throw new Failure('invalid', `Cannot leave a server out: rows must name at least 2 servers, got ${servers.size}`);
  return leaveGroupsOut(
    table,
    Array.from(table.server.subarray(0, table.count), (server) => server % MAX_SERVER_FOLDS),
  );
}

export function leaveRunsOut(table: ObservationTable, holdOut: readonly string[] | undefined): Fold[] {
  const unknown = holdOut?.filter((run) => !table.runs.includes(run)) ?? [];
  if (unknown.length > 0)
    throw new Failure(
      'invalid',
      `Cannot leave these runs out, no row is of them: ${unknown.join(', ')}; there are ${listSome(table.runs)}`,
    );
  if (holdOut === undefined) {
    if (table.runs.length < 2) throw new Failure('invalid', 'Cannot leave a run out: rows must name at least 2 runs');
    return leaveGroupsOut(table, table.run.subarray(0, table.count));
  }
  const isOut = (row: number) => holdOut.includes(table.runs[table.run[row]!]!);
  const rows = Array.from({ length: table.count }, (_, i) => i);
  const fold = { train: rows.filter((row) => !isOut(row)), test: rows.filter(isOut) };
  if (fold.train.length === 0) throw new Failure('invalid', 'Cannot leave every run out: none is left to learn from');
  return [fold];
}

const MAX_LISTED = 20;

function listSome(names: readonly string[]): string {
  if (names.length === 0) return 'no runs';
  const more = names.length > MAX_LISTED ? ` and ${names.length - MAX_LISTED} more` : '';
  return `${names.slice(0, MAX_LISTED).join(', ')}${more}`;
}
