import type { Command } from 'commander';
import { openCliStore } from '../../command-line/open-cli-store.ts';
import { type Cell, formatTable, print, printJson, remark } from '../../command-line/output.ts';
import { Failure } from '../../errors.ts';
import type { TargetSummary } from '../model/describe-model.ts';
import { listModelVersions, type ModelVersion } from '../registry/model-store.ts';
import { formatModelId } from '../schema/model-name.ts';
import { TARGETS, type Target } from '../schema/observation-table.ts';
import { formatSummaries } from './model-summaries.ts';

export type OpenedStore = Awaited<ReturnType<typeof openCliStore>>['store'];

export function addVersionCommands(model: Command): void {
  model
    .command('list')
    .description('List the versions of every model; the served version is marked')
    .option('--model <name>', 'only this model')
    .option('--json', 'print JSON')
    .action(listVersions);
  model
    .command('show')
    .description('Show where a version came from and what it learned')
    .argument('<id>', 'name, or name@version')
    .option('--json', 'print JSON')
    .action(showVersion);
}

async function listVersions({ model, json }: { model?: string; json?: boolean }): Promise<void> {
  await using opened = await openCliStore();
  const versions = await listModelVersions(opened.store, model);
  if (model !== undefined && versions.length === 0)
    throw new Failure('not_found', `Cannot list the versions of "${model}": there is no such model`);
  if (json) return printJson(versions.map(toJson));
  if (versions.length === 0) return remark('No model yet: the prior answers');
  print(
    formatTable(
      ['id', 'served', 'made', 'after', 'TTFT rows', 'MAPE %', 'TPOT rows', 'MAPE %'],
      versions.map((version) => [
        formatModelId(version.name, version.version),
        version.isPromoted ? 'yes' : '',
        new Date(version.createdAtMs).toISOString().slice(0, 19).concat('Z'),
        version.parentVersion === undefined ? undefined : formatModelId(version.name, version.parentVersion),
        ...TARGETS.flatMap((target) => describeScore(version, target)),
      ]),
    ),
  );
}

/** How the part for all pod types did on rows held out while learning. */
function describeScore(version: ModelVersion, target: Target): Cell[] {
  const learned = readLineage(version).learned.find((part) => part.podType === 'all' && part.target === target);
  return [learned?.rows, learned?.validation?.mape.toFixed(1)];
}

function toJson({ lineage, ...version }: ModelVersion): Record<string, unknown> {
  return { id: formatModelId(version.name, version.version), ...version, lineage: JSON.parse(lineage) };
}

async function showVersion(id: string, { json }: { json?: boolean }): Promise<void> {
  await using opened = await openCliStore();
  const version = await findVersion(opened.store, id);
  if (json) return printJson(toJson(version));
  const { source = {}, parameters = {}, learned } = readLineage(version);
  print(`${formatModelId(version.name, version.version)}${version.isPromoted ? ' (served)' : ''}`);
  print(`made ${new Date(version.createdAtMs).toISOString()}, ${version.sizeBytes} bytes, SHA-256 ${version.checksum}`);
  if (version.parentVersion !== undefined) print(`after ${formatModelId(version.name, version.parentVersion)}`);
  print(`from ${formatFacts(source)}`);
  if (Object.keys(parameters).length > 0) print(`by ${formatFacts(parameters)}`);
  print(`\n${formatSummaries(learned)}`);
}

interface Lineage {
  readonly source?: Facts;
  /** Absent when it was not learned here. */
  readonly parameters?: Facts;
  readonly learned: readonly TargetSummary[];
}

type Facts = Readonly<Record<string, unknown>>;

function readLineage({ lineage }: ModelVersion): Lineage {
  return { learned: [], ...(JSON.parse(lineage) as Partial<Lineage>) };
}

/** `judgedRows: 1408` → `judged rows 1408`; what is empty is left out. */
function formatFacts(facts: Facts): string {
  return Object.entries(facts)
    .map(([name, value]) => [name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`), formatFact(value)])
    .filter(([, text]) => text !== '')
    .map(([name, text]) => `${name} ${text}`)
    .join(', ');
}

function formatFact(value: unknown): string {
  if (typeof value === 'number') return String(Number.isInteger(value) ? value : Number(value.toPrecision(3)));
  if (Array.isArray(value)) return value.map(formatFact).join(' ');
  if (typeof value === 'object' && value !== null) return Object.values(value).map(formatFact).join(' ');
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** A name alone means the version that is served, or else the newest. */
export async function findVersion(store: OpenedStore, id: string): Promise<ModelVersion> {
  const { name, version } = parseId(id);
  const versions = await listModelVersions(store, name);
  const found =
    version === undefined
      ? (versions.find((candidate) => candidate.isPromoted) ?? versions[0])
      : versions.find((candidate) => candidate.version === version);
  if (found === undefined) throw new Failure('not_found', `Cannot find the model "${id}"`);
  return found;
}

export function parseId(id: string): { name: string; version: number | undefined } {
  const match = /^([^@]+)(?:@([1-9]\d{0,14}))?$/.exec(id);
  if (match === null) throw new Failure('invalid', `Cannot read "${id}": it must be a name, or name@version`);
  return { name: match[1]!, version: match[2] === undefined ? undefined : Number(match[2]) };
}
