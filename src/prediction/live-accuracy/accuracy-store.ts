/** Writes the live accuracy of this process, and merges it into longer periods. */
import {
  nameStatement,
  procedure,
  type Row,
  type Statement,
  type Store,
  statement,
  type Transaction,
} from '../../database/store.ts';
import { bindRowsExactly, multiRowInsert } from '../../database/value-rows.ts';
import { COUNTS_MINUTES, type CountCell, SUMS_MINUTES, type SumsCell, type SumsKind } from './accuracy-recorder.ts';
import { SUM_COLUMNS } from './accuracy-sums.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

export const SUMS_KEY = [
  'target_model',
  'start_ms',
  'minutes',
  'process',
  'kind',
  'part',
  'target',
  'version',
] as const;
export const COUNTS_KEY = [
  'target_model',
  'start_ms',
  'minutes',
  'process',
  'target',
  'version',
  'axis',
  'load_range',
  'ratio',
] as const;
export const PART_COUNTS_KEY = [...SUMS_KEY, 'axis', 'load_range', 'ratio'] as const;

const replaceSums = ['last_ms', ...SUM_COLUMNS].map((name) => `${name} = excluded.${name}`).join(', ');
type SumColumn = (typeof SUM_COLUMNS)[number];
const SUM_TYPES = Object.fromEntries(SUM_COLUMNS.map((name) => [name, 'real'])) as Record<SumColumn, 'real'>;
/** The columns of a part of a model's answers: a pod type or a server, one target, one version. */
const PART_TYPES = {
  target_model: 'text',
  start_ms: 'int',
  minutes: 'int',
  process: 'text',
  kind: 'text',
  part: 'text',
  target: 'text',
  version: 'int',
} as const;
const saveSumsSql = multiRowInsert(
  'accuracy-sums-save',
  'accuracy_sums',
  {
    ...PART_TYPES,
    last_ms: 'int',
    ...SUM_TYPES,
  },
  `ON CONFLICT (${SUMS_KEY.join(', ')}) DO UPDATE SET ${replaceSums}`,
);
const saveCountsSql = multiRowInsert(
  'error-counts-save',
  'error_counts',
  {
    ...PART_TYPES,
    axis: 'int',
    load_range: 'int',
    ratio: 'int',
    times: 'int',
  },
  `ON CONFLICT (${PART_COUNTS_KEY.join(', ')}) DO UPDATE SET times = excluded.times`,
);

/** Saves sums in one transaction. The rows hold whole sums, so they may be written again after an answer was lost. */
export async function saveAccuracySums(store: Store, process: string, cells: readonly SumsCell[]): Promise<void> {
  const rows = cells.map(({ targetModel, startMs, kind, part, target, version, lastMs, sums }) => ({
    target_model: targetModel,
    start_ms: startMs,
    minutes: SUMS_MINUTES,
    process,
    kind,
    part,
    target,
    version,
    last_ms: lastMs,
    ...(Object.fromEntries(SUM_COLUMNS.map((name, index) => [name, sums[index] ?? 0])) as Record<SumColumn, number>),
  }));
  await store.writeAll(bindRowsExactly(saveSumsSql, rows));
}

/** Saves counts in one transaction, like the sums. */
export async function saveErrorCounts(store: Store, process: string, cells: readonly CountCell[]): Promise<void> {
  const rows = cells.map(({ targetModel, startMs, range, ...cell }) => ({
    target_model: targetModel,
    start_ms: startMs,
    minutes: COUNTS_MINUTES,
    process,
    load_range: range,
    ...cell,
  }));
  await store.writeAll(bindRowsExactly(saveCountsSql, rows));
}

export type MergedTableName = 'accuracy_sums' | 'accuracy_counts' | 'error_counts';

interface MergeRule {
  readonly table: MergedTableName;
  /** Undefined for a table without columns for pod type or server. */
  readonly kind?: SumsKind;
  readonly fromMinutes: number;
  readonly toMinutes: number;
  /** The wait after the end of the longer period. By then no process writes the shorter ones. */
  readonly afterMs: number;
  /** The most rows of one model in one longer period; those with the fewest observations are left out. */
  readonly maximumOfModel: number;
  /** The most rows of all models in one longer period. Models share it evenly: one with many rows does not displace those of another. */
  readonly maximum: number;
}

const QUARTER_DAY = 360;
/** No period is longer. */
export const LONGEST_PERIOD_MS = QUARTER_DAY * MINUTE_MS;

const SUMS_OF = {
  'pod type': { table: 'accuracy_sums', kind: 'pod type' },
  server: { table: 'accuracy_sums', kind: 'server' },
} as const;

function limit(rows: number): Pick<MergeRule, 'maximumOfModel' | 'maximum'> {
  return { maximumOfModel: rows, maximum: rows };
}

/** Recent periods are short, older ones long. `accuracy_counts` is written by older programs only. */
const MERGE_RULES: readonly MergeRule[] = [
  { ...SUMS_OF['pod type'], fromMinutes: SUMS_MINUTES, toMinutes: 60, afterMs: 12 * HOUR_MS, ...limit(2000) },
  { ...SUMS_OF.server, fromMinutes: SUMS_MINUTES, toMinutes: 60, afterMs: HOUR_MS, ...limit(4000) },
  { ...SUMS_OF['pod type'], fromMinutes: 60, toMinutes: QUARTER_DAY, afterMs: 7 * DAY_MS, ...limit(2000) },
  { ...SUMS_OF.server, fromMinutes: 60, toMinutes: QUARTER_DAY, afterMs: DAY_MS, ...limit(4000) },
  ...(
    [
      { table: 'error_counts', kind: 'pod type' },
      { table: 'error_counts', kind: 'server' },
      { table: 'accuracy_counts' },
    ] as const
  ).map((rows) => ({
    ...rows,
    fromMinutes: COUNTS_MINUTES,
    toMinutes: QUARTER_DAY,
    afterMs: HOUR_MS,
    maximumOfModel: 10_000,
    maximum: 40_000,
  })),
];

interface MergeStatements {
  readonly findFirst: Statement<{ readonly first: number | null }>;
  readonly merge: Statement<Row>;
  readonly remove: Statement<Row>;
}

interface MergedTable {
  readonly name: MergedTableName;
  readonly key: readonly string[];
  /** How each other column of several rows is merged into one value. */
  readonly aggregates: Readonly<Record<string, 'SUM' | 'MAX'>>;
  /** A further condition. Its parameter is the last one: $7 of the merge, renumbered for the other statements. */
  readonly condition: string;
}

/**
 * Parameters: the minutes of the short periods, the start and the end of a longer one, its minutes, and the two limits of the
 * rule.
 */
function createMergeStatements({ name, key, aggregates, condition }: MergedTable): MergeStatements {
  const values = Object.entries(aggregates);
  const set = (column: string, combine: string) =>
    combine === 'SUM' ? `${name}.${column} + excluded.${column}` : `excluded.${column}`;
  const selected = key.map((column) =>
    column === 'start_ms' ? 'CAST($2 AS BIGINT)' : column === 'minutes' ? 'CAST($4 AS BIGINT)' : column,
  );
  const columns = selected.map((column) => (column === 'process' ? "''" : column));
  const grouped = key.filter((column) => !['start_ms', 'minutes', 'process'].includes(column));
  const range = `minutes = $1 AND start_ms >= $2 AND start_ms < $3`;
  return {
    findFirst: statement(
      nameStatement(name, 'find-first'),
      `SELECT MIN(start_ms) AS first FROM ${name} WHERE minutes = $1 AND start_ms < $2${condition.replace('$7', '$3')}`,
    ),
    merge: statement(
      nameStatement(name, 'merge'),
      `INSERT INTO ${name} (${[...key, ...values.map(([column]) => column)].join(', ')})
       SELECT ${[...columns, ...values.map(([column]) => column)].join(', ')} FROM (
         SELECT ${[...grouped, ...values.map(([column, combine]) => `${combine}(${column}) AS ${column}`)].join(', ')},
           ROW_NUMBER() OVER (PARTITION BY target_model ORDER BY SUM(times) DESC) AS place
         FROM ${name} WHERE ${range}${condition} GROUP BY ${grouped.join(', ')}
       ) AS merged
       WHERE place <= $5 ORDER BY place LIMIT $6
       ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${values.map(([column, combine]) => `${column} = ${set(column, combine)}`).join(', ')}`,
    ),
    remove: statement(
      nameStatement(name, 'remove'),
      `DELETE FROM ${name} WHERE ${range}${condition.replace('$7', '$4')}`,
    ),
  };
}

const MERGES: Readonly<Record<MergedTableName, MergeStatements>> = {
  accuracy_sums: createMergeStatements({
    name: 'accuracy_sums',
    key: SUMS_KEY,
    aggregates: { last_ms: 'MAX', ...Object.fromEntries(SUM_COLUMNS.map((name) => [name, 'SUM' as const])) },
    condition: ' AND kind = $7',
  }),
  accuracy_counts: createMergeStatements({
    name: 'accuracy_counts',
    key: COUNTS_KEY,
    aggregates: { times: 'SUM' },
    condition: '',
  }),
  error_counts: createMergeStatements({
    name: 'error_counts',
    key: PART_COUNTS_KEY,
    aggregates: { times: 'SUM' },
    condition: ' AND kind = $7',
  }),
};

interface MergeInput {
  readonly rule: MergeRule;
  readonly startMs: number;
}

/**
 * Merges the rows of one longer period. The transaction is serializable: a row that another process changes meanwhile is neither
 * lost nor counted twice, and two processes that merge the same period do it once.
 */
export const mergePeriod = procedure(
  import.meta.url,
  'mergePeriod',
  async (transaction: Transaction, { rule, startMs }: MergeInput): Promise<void> => {
    const { table, fromMinutes, toMinutes, maximumOfModel, maximum } = rule;
    const { merge, remove } = MERGES[table];
    const kind = listKinds(rule);
    const range = [fromMinutes, startMs, startMs + toMinutes * MINUTE_MS];
    await transaction.run(merge, [...range, toMinutes, maximumOfModel, maximum, ...kind]);
    await transaction.run(remove, [...range, ...kind]);
  },
);

function listKinds({ kind }: MergeRule): SumsKind[] {
  return kind === undefined ? [] : [kind];
}

/** Merges the oldest period that is due by each rule. True when there may be more. */
export async function mergeDuePeriods(store: Store, nowMs: number): Promise<boolean> {
  let hasMerged = false;
  for (const rule of MERGE_RULES) {
    const { table, fromMinutes, toMinutes, afterMs } = rule;
    const lengthMs = toMinutes * MINUTE_MS;
    const dueMs = nowMs - afterMs;
    const { findFirst } = MERGES[table];
    const endMs = dueMs - (dueMs % lengthMs);
    const [row] = await store.read(findFirst, [fromMinutes, endMs, ...listKinds(rule)]);
    const first = row?.first ?? null;
    if (first === null) continue;
    await store.call(mergePeriod, { rule, startMs: first - (first % lengthMs) });
    hasMerged = true;
  }
  return hasMerged;
}
