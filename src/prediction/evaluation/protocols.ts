/**
 * How a model is judged, each protocol answering another question. In none does a model see the rows it is judged on,
 * nor, where order matters, anything that came after them.
 */
import { Failure } from '../../errors.ts';
import { createLiveModel } from '../online/live-model.ts';
import { type ObservationTable, selectRows } from '../schema/observation-table.ts';
import { type TrainParameters, trainModel } from '../training/train-model.ts';
import type { Answers } from './accuracy.ts';
import { answerRows } from './offline-answers.ts';
import { answerPrequentially, createLiveAnswerer, selectKnownBy } from './prequential.ts';
import { createKnownAt, type Reporting, retellHistory } from './report-times.ts';
import { type Age, ageMetrics } from './stale-metrics.ts';

export const PROTOCOLS = [
  'random',
  'time',
  'prequential',
  'leave-load-out',
  'leave-server-out',
  'leave-run-out',
  'stale-metrics',
] as const;
export type Protocol = (typeof PROTOCOLS)[number];

export interface EvaluateOptions {
  readonly parameters: TrainParameters;
  readonly onProgress: (text: string) => void;
  /** The runs that `leave-run-out` judges; each in turn when undefined. */
  readonly holdOut?: readonly string[] | undefined;
  /** How old the metrics are that `stale-metrics` predicts by; a second, or ten rows where rows have no times. */
  readonly age?: Age | undefined;
  /** How late, how seldom and how incompletely times are reported; at once when undefined. */
  readonly reporting?: Reporting | undefined;
}

interface Fold {
  readonly learn: readonly number[];
  readonly judge: readonly number[];
}

export function evaluate(protocol: Protocol, asReported: ObservationTable, options: EvaluateOptions): Answers {
  const table = options.reporting === undefined ? asReported : retellHistory(asReported, options.reporting);
  if (table.count < MIN_ROWS)
    throw new Failure('invalid', `Cannot evaluate: at least ${MIN_ROWS} rows are needed, got ${table.count}`);
  const answers: Answers = { ttft: [], tpot: [] };
  if (protocol === 'prequential') {
    answerPrequentially(table, listRows(table), { ...options, answers });
    return answers;
  }
  if (protocol === 'time') {
    answerInTime(table, table, options, answers);
    return answers;
  }
  if (protocol === 'stale-metrics') {
    answerInTime(table, ageMetrics(table, listRows(table), chooseAge(table, options.age)), options, answers);
    return answers;
  }
  if (protocol === 'leave-run-out') {
    answerHeldOutRuns(table, options, answers);
    return answers;
  }
  const folds = FOLDS_OF[protocol](table);
  for (const [i, { learn, judge }] of folds.entries()) {
    options.onProgress(`${protocol}: part ${i + 1} of ${folds.length}`);
    const model = trainModel('evaluated@1', selectRows(table, learn), options.parameters);
    answerRows(model, table, judge, answers);
  }
  return answers;
}

const MIN_ROWS = 20;
const SEEDS = [1, 2, 3, 4, 5];

type FoldedProtocol = Exclude<Protocol, 'prequential' | 'time' | 'leave-run-out' | 'stale-metrics'>;

const FOLDS_OF: Readonly<Record<FoldedProtocol, (table: ObservationTable) => Fold[]>> = {
  random: (table) => SEEDS.map((seed) => splitRandomly(table.count, seed)),
  'leave-load-out': (table) => leaveGroupsOut(table, labelLoads(table)),
  'leave-server-out': leaveServersOut,
};

/**
 * The trees stay as the first 70 % of each run taught them; what each row shows corrects the following ones, as in
 * service. A source without runs is one run. `asSeen` has the metrics by which the last 30 % are predicted.
 */
function answerInTime(
  table: ObservationTable,
  asSeen: ObservationTable,
  { parameters, onProgress, reporting }: EvaluateOptions,
  answers: Answers,
): void {
  const cutOfRun = new Map<number, { readonly rows: readonly number[]; readonly cut: number }>();
  for (const [run, rows] of Map.groupBy(listRows(table), (row) => table.run[row]!))
    cutOfRun.set(run, { rows, cut: Math.floor(0.7 * rows.length) });
  const runs = [...cutOfRun.values()];
  onProgress('learning from the first 70 %');
  const knownAt = createKnownAt(table, reporting);
  const learned = selectKnownBy(
    table,
    runs.flatMap(({ rows, cut }) => rows.slice(0, cut)),
    { knownAt, nowMsOfRun: (run) => table.atMs[cutOfRun.get(run)!.rows[cutOfRun.get(run)!.cut]!]! },
  );
  const judged = new Set(runs.flatMap(({ rows, cut }) => rows.slice(cut)));
  const live = createLiveModel(trainModel('evaluated@1', learned, parameters));
  createLiveAnswerer(live, asSeen, { answers, knownAt })(listRows(table).filter((row) => judged.has(row)));
}

const TYPICAL_AGE_MS = 1000;
const TYPICAL_AGE_ROWS = 10;

function chooseAge(table: ObservationTable, age: Age | undefined): Age {
  const isTimed = hasTimes(table);
  if (age === undefined) return isTimed ? { ms: TYPICAL_AGE_MS } : { rows: TYPICAL_AGE_ROWS };
  if ('ms' in age && !isTimed)
    throw new Failure(
      'invalid',
      'Cannot make metrics so many milliseconds old: not all rows have a time; give an age in rows',
    );
  return age;
}

/** Judged in the order of time, corrected by what the same runs have shown before, as a service new to them would. */
function answerHeldOutRuns(table: ObservationTable, options: EvaluateOptions, answers: Answers): void {
  const folds = leaveRunsOut(table, options.holdOut);
  const inTime = listRows(table);
  for (const [i, { learn, judge }] of folds.entries()) {
    options.onProgress(`leave-run-out: part ${i + 1} of ${folds.length}`);
    const judged = new Set(judge);
    const live = createLiveModel(trainModel('evaluated@1', selectRows(table, learn), options.parameters));
    createLiveAnswerer(live, table, { answers, knownAt: createKnownAt(table, options.reporting) })(
      inTime.filter((row) => judged.has(row)),
    );
  }
}

/** Rows in the order of time: as the file has them, or by their times when it has any. */
function listRows(table: ObservationTable): number[] {
  const rows = Array.from({ length: table.count }, (_, i) => i);
  return hasTimes(table) ? rows.sort((a, b) => table.atMs[a]! - table.atMs[b]! || a - b) : rows;
}

function hasTimes(table: ObservationTable): boolean {
  return !table.atMs.subarray(0, table.count).some(Number.isNaN);
}

function splitRandomly(count: number, seed: number): Fold {
  const random = createRandom(seed);
  const rows = Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [rows[i], rows[j]] = [rows[j]!, rows[i]!];
  }
  const cut = Math.max(1, Math.round(count / 10));
  // Learning happens in the order of time: only what is left out is random.
  return { judge: rows.slice(0, cut), learn: rows.slice(cut).sort((a, b) => a - b) };
}

const LOAD_BANDS = 5;

/** Five bands of equal size by how many requests the server had. */
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
    learn: rows.filter((row) => labels[row] !== group),
    judge: rows.filter((row) => labels[row] === group),
  }));
}

const MAX_SERVER_FOLDS = 12;

/** One fold a server; with many servers, several are left out together. */
function leaveServersOut(table: ObservationTable): Fold[] {
  const servers = new Set(table.server.subarray(0, table.count));
  if (servers.size < 2)
    throw new Failure('invalid', `Cannot leave a server out: rows must name at least 2 servers, got ${servers.size}`);
  return leaveGroupsOut(
    table,
    Array.from(table.server.subarray(0, table.count), (server) => server % MAX_SERVER_FOLDS),
  );
}

function leaveRunsOut(table: ObservationTable, holdOut: readonly string[] | undefined): Fold[] {
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
  const fold = { learn: rows.filter((row) => !isOut(row)), judge: rows.filter(isOut) };
  if (fold.learn.length === 0) throw new Failure('invalid', 'Cannot leave every run out: none is left to learn from');
  return [fold];
}

const MAX_LISTED = 20;

function listSome(names: readonly string[]): string {
  if (names.length === 0) return 'no runs';
  const more = names.length > MAX_LISTED ? ` and ${names.length - MAX_LISTED} more` : '';
  return `${names.slice(0, MAX_LISTED).join(', ')}${more}`;
}

/** mulberry32: the same split on every machine. */
function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
