/** Runs `trivet model capacity`: prints the highest request rate within limits of latency. */
import { Command, InvalidArgumentError } from 'commander';
import { type CliStore, openCliStore } from '../../command-line/open-cli-store.ts';
import { formatTable, print, printJson, remark } from '../../command-line/output.ts';
import { durationIn } from '../../command-line/time-option.ts';
import { Failure } from '../../errors.ts';
import { findVersion } from '../administration/implement-models.ts';
import { type Capacity, findCapacity } from '../capacity/find-capacity.ts';
import { describeRange, LIMIT_RANGES, type NumberRange, readNumberIn } from '../capacity/limit-ranges.ts';
import { createObservedPool, type MeanLengths } from '../capacity/observed-pool.ts';
import type { LatencyLimits } from '../capacity/search-rates.ts';
import type { Format } from '../formats/read-observations.ts';
import { readTable } from '../formats/read-table.ts';
import { decodeModel } from '../model/model-codec.ts';
import { listSamples } from '../observations/sample-store.ts';
import { readModelFile } from '../registry/model-store.ts';
import type { Observation } from '../schema/observation.ts';
import { appendObservation, createObservationTable } from '../schema/observation-table.ts';
import {
  checkAnyRow,
  createFormatOption,
  createKvCapacityOption,
  createServerOption,
  formatRefusals,
  warnOfIgnored,
  warnOfMistakes,
} from './row-input.ts';

interface CapacityOptions {
  readonly ttft?: number;
  readonly tpot?: number;
  readonly quantile: number;
  readonly promptTokens?: number;
  readonly outputTokens?: number;
  readonly servers?: readonly string[];
  readonly podType?: string;
  readonly input?: readonly string[];
  readonly format?: Format;
  readonly server?: string;
  readonly kvCapacityTokens?: number;
  readonly json?: boolean;
}

const MAX_SAMPLES = 20_000;

export function createCapacityCommand(): Command {
  return new Command('capacity')
    .description('Find the highest rate of requests at which servers keep limits of TTFT and TPOT')
    .argument('<id>', 'name, or name@version; a name means the version that is served')
    .option(
      '--ttft <duration>',
      'the time to the first token must stay below, as 800ms or 2s; a number alone is ms; this or --tpot is required',
      parseMilliseconds,
    )
    .option(
      '--tpot <duration>',
      'the time per output token must stay below, in the same notation; this or --ttft is required',
      parseMilliseconds,
    )
    .option(
      '--quantile <share>',
      'the share of requests that must stay below, 0.5 to 0.99',
      parseNumberIn(LIMIT_RANGES.quantile),
      0.9,
    )
    .option(
      '--output-tokens <tokens>',
      'the mean length of an answer (default: that of the samples)',
      parseNumberIn(LIMIT_RANGES.outputTokens),
    )
    .option(
      '--prompt-tokens <tokens>',
      'the mean length of a prompt (default: that of the samples)',
      parseNumberIn(LIMIT_RANGES.promptTokens),
    )
    .option('--servers <list>', 'the pool, as server_ip names them, with commas; all that the samples name', splitList)
    .option('--pod-type <name>', 'servers of this pod type, instead of those without one')
    .option('--input <file...>', 'observations that show the load, as for train; else the samples in the store')
    .addOption(createFormatOption())
    .addOption(createKvCapacityOption())
    .addOption(createServerOption())
    .option('--json', 'print JSON')
    .action(printCapacity);
}

const parseMilliseconds = durationIn({ bareUnit: 'ms', ...LIMIT_RANGES.milliseconds });

function parseNumberIn(range: NumberRange): (text: string) => number {
  return (text) => {
    const value = readNumberIn(range, text);
    if (value === undefined) throw new InvalidArgumentError(`it must be ${describeRange(range)}.`);
    return value;
  };
}

function splitList(text: string): string[] {
  return text.split(',').map((name) => name.trim());
}

async function printCapacity(id: string, options: CapacityOptions): Promise<void> {
  const limits = readLimits(options);
  await using opened = await openCliStore();
  const { name, version } = await findVersion(opened, id);
  const model = decodeModel(await readModelFile(opened.store, name, version));
  const samples = await readSamples(opened, name, options);
  const { servers, podType = '', promptTokens, outputTokens } = options;
  const pool = createObservedPool({ model, samples, servers, podType, promptTokens, outputTokens });
  const capacity = findCapacity(pool, limits);
  const lengths = listLengths(pool.lengths, options);
  if (options.json) printJson({ ...(capacity ?? IDLE), ...lengths });
  else if (capacity === undefined) print(`Not even idle servers keep these limits\n${describeLengths(lengths)}`);
  else printFound(capacity, limits, lengths);
}

const IDLE = { requestsPerSecond: 0, concurrency: 0, limitedBy: 'idle', servers: [] };

const LENGTHS = ['promptTokens', 'outputTokens'] as const;

interface AnsweredLengths extends MeanLengths {
  /** The lengths that were not given, and are means of the samples. */
  readonly assumed: readonly (typeof LENGTHS)[number][];
}

function listLengths({ promptTokens, outputTokens }: MeanLengths, options: CapacityOptions): AnsweredLengths {
  return { promptTokens, outputTokens, assumed: LENGTHS.filter((name) => options[name] === undefined) };
}

function describeLengths({ assumed, promptTokens, outputTokens }: AnsweredLengths): string {
  const origin = (name: (typeof LENGTHS)[number]) => (assumed.includes(name) ? ' (as in the samples)' : '');
  const prompts = `prompts of ${Math.round(promptTokens)} tokens${origin('promptTokens')}`;
  return `For ${prompts} and answers of ${Math.round(outputTokens)}${origin('outputTokens')}`;
}

function readLimits({ ttft, tpot, quantile }: CapacityOptions): LatencyLimits {
  if (ttft === undefined && tpot === undefined)
    throw new Failure('invalid', 'Cannot find the capacity: --ttft, --tpot or both must give a limit');
  return { ttftMs: ttft, tpotMs: tpot, quantile };
}

async function readSamples(
  opened: Pick<CliStore, 'store' | 'world'>,
  name: string,
  options: CapacityOptions,
): Promise<Observation[]> {
  const samples =
    options.input === undefined ? await readStored(opened, name) : await readFiles(options.input, name, options);
  const table = createObservationTable(Math.max(1, samples.length));
  for (const sample of samples) appendObservation(table, sample);
  warnOfMistakes(table);
  return samples;
}

async function readStored({ store, world }: Pick<CliStore, 'store' | 'world'>, name: string): Promise<Observation[]> {
  const newest = { limit: MAX_SAMPLES, nowMs: world.nowMs() };
  return (await listSamples(store, name, newest)).map(({ observation }) => observation);
}

async function readFiles(
  paths: readonly string[],
  name: string,
  { format, server, kvCapacityTokens }: CapacityOptions,
): Promise<Observation[]> {
  const samples: Observation[] = [];
  const read = await readTable(paths, {
    format,
    server,
    kvCapacityTokens,
    targetModel: name,
    stdin: process.stdin,
    check(observation) {
      if (observation.targetModel !== name) return `target_model is "${observation.targetModel}"`;
      samples.push(observation);
      return undefined;
    },
  });
  warnOfIgnored(read.ignoredFields);
  checkAnyRow(read, 'find the capacity');
  if (read.refusals.length > 0) remark(`Rows left out\n${formatRefusals(read.refusals)}`);
  return orderByTime(samples);
}

/** Sorts by time, like the samples of the store. Without a time of day in some, the order stays. */
function orderByTime(samples: readonly Observation[]): Observation[] {
  const isTimed = samples.every(({ atMs }) => atMs !== undefined);
  return isTimed ? samples.toSorted((a, b) => a.atMs! - b.atMs!) : [...samples];
}

const REASONS: Readonly<Record<Capacity['limitedBy'], string>> = {
  ttft: 'Above it, TTFT exceeds its limit',
  tpot: 'Above it, TPOT exceeds its limit',
  'observed load':
    'The servers can take at least this: the samples show no higher load, and the limits still hold there',
};

function describeEnd({ limitedBy, plateau }: Capacity): string {
  if (plateau === undefined) return REASONS[limitedBy];
  const [from, to] = [round(plateau.fromRequestsPerSecond), round(plateau.toRequestsPerSecond)];
  return `From ${from} to ${to} requests a second, ${limitedBy.toUpperCase()} stays about at its limit`;
}

function printFound(capacity: Capacity, { quantile }: LatencyLimits, lengths: AnsweredLengths): void {
  const percent = Number((100 * quantile).toFixed(1));
  const atLeast = capacity.limitedBy === 'observed load' ? 'At least ' : '';
  const underWay = `${round(capacity.concurrency)} under way on average`;
  print(`${atLeast}${round(capacity.requestsPerSecond)} requests a second, ${underWay}`);
  print(`p${percent} there: TTFT ${round(capacity.ttftMs)} ms, TPOT ${describeTpot(capacity)}`);
  print(`${describeEnd(capacity)}\n${describeLengths(lengths)}\n`);
  print(
    formatTable(
      ['server', 'requests a second', 'under way'],
      capacity.servers.map(({ name, requestsPerSecond, concurrency }) => [
        name,
        round(requestsPerSecond),
        round(concurrency),
      ]),
    ),
  );
}

function describeTpot({ tpotMs }: Capacity): string {
  return tpotMs === undefined ? 'none, with one token an answer' : `${round(tpotMs)} ms`;
}

function round(value: number): number {
  return Number(value.toPrecision(3));
}
