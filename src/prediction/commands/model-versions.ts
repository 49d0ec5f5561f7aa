/** Runs `trivet model list`, `show` and `compare`. */
import type { Command } from 'commander';
import { addServiceOptions } from '../../command-line/open-operator.ts';
import { type Cell, formatTable, print, printJson, remark } from '../../command-line/output.ts';
import type { OutputOf } from '../../operations/operation.ts';
import { compareTwoVersions } from '../administration/accuracy-operations.ts';
import { listVersions, showVersion, type VersionJson } from '../administration/model-operations.ts';
import type { TargetSummary } from '../model/describe-model.ts';
import { formatModelId } from '../schema/model-name.ts';
import { PREDICTION_TARGETS, type PredictionTarget } from '../schema/observation-table.ts';
import { formatLogError, formatSummaries } from './model-summaries.ts';
import type { OpenModels, OutputOptions } from './open-models.ts';

export function addVersionCommands(model: Command, open: OpenModels): void {
  addServiceOptions(model.command('list'))
    .description('List the versions of every model; the served version is marked')
    .option('--model <name>', 'only this model')
    .option('--json', 'print JSON')
    .action(list.bind(undefined, open));
  addServiceOptions(model.command('compare'))
    .description('Compare the errors of two versions on the same newest samples')
    .argument('<id>', 'name@version')
    .option('--with <version>', 'another version of the same model; the served one when left out')
    .option('--json', 'print JSON')
    .action(compare.bind(undefined, open));
  addServiceOptions(model.command('show'))
    .description('Show where a version came from and what it learned')
    .argument('<id>', 'name, or name@version')
    .option('--json', 'print JSON')
    .action(show.bind(undefined, open));
}

type Page = OutputOf<typeof listVersions>;

async function list(open: OpenModels, options: OutputOptions & { readonly model?: string }): Promise<void> {
  const { model, json } = options;
  await using operator = await open(options);
  const versions: VersionJson[] = [];
  for (let after: string | null | undefined; after !== null; ) {
    const page: Page = await operator.call(listVersions, { model, after, limit: 500 });
    versions.push(...page.versions);
    after = page.next;
  }
  if (json) return printJson(versions);
  if (versions.length === 0) return remark('No model yet: the prior answers');
  print(
    formatTable(
      ['id', 'served', 'made', 'after', 'TTFT rows', 'MAPE %', 'live %', 'TPOT rows', 'MAPE %', 'live %'],
      versions.map((version) => [
        version.id,
        version.isPromoted ? 'yes' : '',
        new Date(version.createdAtMs).toISOString().slice(0, 19).concat('Z'),
        version.parentVersion === undefined ? undefined : formatModelId(version.name, version.parentVersion),
        ...PREDICTION_TARGETS.flatMap((target) => describeScore(version, target)),
      ]),
    ),
  );
}

/**
 * Returns the rows of the part for all pod types, its error on held-out rows, and the live error. Errors are shown only for served
 * versions, since other versions were measured on other rows.
 */
function describeScore(version: VersionJson, target: PredictionTarget): Cell[] {
  const learned = readLineage(version).learned.find((part) => part.podType === 'all' && part.target === target);
  if (!version.isPromoted) return [learned?.rows, undefined, undefined];
  return [learned?.rows, learned?.validation?.mape.toFixed(1), version.live[target]?.mape.toFixed(1)];
}

interface CompareOptions extends OutputOptions {
  readonly with?: string;
}

async function compare(open: OpenModels, id: string, options: CompareOptions): Promise<void> {
  await using operator = await open(options);
  const comparison = await operator.call(compareTwoVersions, { id, with: options.with });
  if (options.json) return printJson(comparison);
  if (comparison.rows === 0) return remark('No samples yet: there is nothing to compare the versions on');
  print(formatComparison(comparison));
}

export function formatComparison(comparison: OutputOf<typeof compareTwoVersions>): string {
  const { id, otherId, rows, learnedByVersion, learnedByOther, targets } = comparison;
  const learned = [
    [id, learnedByVersion],
    [otherId, learnedByOther],
  ] as const;
  return [
    `${id} compared with ${otherId} on the same ${rows} newest samples, without learning from later reports\n`,
    ...learned
      .filter(([, count]) => count > 0)
      .map(([name, count]) => `${name} may have learned from ${count} of them, which flatters it`),
    formatTable(
      [
        'target',
        'rows',
        `${id} MAPE %`,
        `${otherId} MAPE %`,
        'difference',
        '90 % interval',
        'verdict',
        `${id} p90 coverage %`,
        `${otherId} p90 coverage %`,
      ],
      targets.map(({ target, rows: compared, version: one, other, difference }) => [
        target.toUpperCase(),
        compared,
        one.mape.toFixed(1),
        other.mape.toFixed(1),
        formatPoints(difference.mean),
        `${formatPoints(difference.low)} to ${formatPoints(difference.high)}`,
        difference.verdict,
        one.p90Coverage.toFixed(1),
        other.p90Coverage.toFixed(1),
      ]),
    ),
  ].join('\n');
}

function formatPoints(points: number): string {
  return `${points > 0 ? '+' : ''}${points.toFixed(2)}`;
}

async function show(open: OpenModels, name: string, options: OutputOptions): Promise<void> {
  await using operator = await open(options);
  const version = await operator.call(showVersion, { id: name });
  if (options.json) return printJson(version);
  const { source = {}, parameters = {}, learned } = readLineage(version);
  print(formatTable(['version', version.id], describeVersion(version)));
  print(`\n${formatTable(['origin', 'value'], listFacts(source))}`);
  if (Object.keys(parameters).length > 0) print(`\n${formatTable(['parameter', 'value'], listFacts(parameters))}`);
  print(`\n${formatLive(version)}`);
  print(`\n${formatSummaries(learned)}`);
}

function describeVersion({ isPromoted, createdAtMs, name, parentVersion, sizeBytes, checksum }: VersionJson): Cell[][] {
  return [
    ['served', isPromoted ? 'yes' : 'no'],
    ['made', new Date(createdAtMs).toISOString()],
    ...(parentVersion === undefined ? [] : [['after', formatModelId(name, parentVersion)]]),
    ['size', `${sizeBytes} bytes`],
    ['SHA-256', checksum],
  ];
}

/** Formats the live accuracy, from the reports to all processes. */
function formatLive({ live }: VersionJson): string {
  const rows = PREDICTION_TARGETS.flatMap((target) => {
    const scores = live[target];
    if (scores === undefined) return [];
    const { rows: times, mape, mdape, bias, p90Coverage } = scores;
    return [[target.toUpperCase(), times, ...[mape, mdape, bias, p90Coverage].map((value) => value.toFixed(1))]];
  });
  if (rows.length === 0) return 'No gateway reported a latency that this version predicted in the last 24 hours';
  const columns = ['live, 24 hours', 'times', 'MAPE %', 'MdAPE %', 'bias %', 'p90 coverage %'];
  return formatTable(columns, rows);
}

interface Lineage {
  readonly source?: Facts;
  /** Absent for a version that was not learned here. */
  readonly parameters?: Facts;
  readonly learned: readonly TargetSummary[];
}

type Facts = Readonly<Record<string, unknown>>;

function readLineage({ lineage }: VersionJson): Lineage {
  return { learned: [], ...(lineage as Partial<Lineage>) };
}

const FACT_NAMES: Readonly<Record<string, string>> = {
  judgedRows: 'rows that both versions were compared on',
  championError: 'mean factor between times and the version before',
  challengerError: 'mean factor between times and this version',
  lastSampleId: 'id of the newest sample',
};

const LOG_ERRORS: ReadonlySet<string> = new Set(['championError', 'challengerError']);

/** `learningRate` → `learning rate`. */
function nameAsWords(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** Lists facts, without empty ones. */
function listFacts(facts: Facts): Cell[][] {
  return Object.entries(facts)
    .map(([name, value]) => [
      FACT_NAMES[name] ?? nameAsWords(name),
      LOG_ERRORS.has(name) ? formatLogError(value) : formatFact(value),
    ])
    .filter(([, text]) => text !== '');
}

function formatFact(value: unknown): string {
  if (typeof value === 'number') return String(Number.isInteger(value) ? value : Number(value.toPrecision(3)));
  if (Array.isArray(value)) return value.map(formatFact).join(' ');
  if (typeof value === 'object' && value !== null) return Object.values(value).map(formatFact).join(' ');
  return typeof value === 'string' ? value : JSON.stringify(value);
}
