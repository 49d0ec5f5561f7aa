/** Declares the options for files of rows, and reports which rows and fields were not used. */
import { Option } from 'commander';
import { formatTable, remark } from '../../command-line/output.ts';
import { parsePositive } from '../../command-line/positive-number.ts';
import { Failure } from '../../errors.ts';
import { FORMATS, type Format } from '../formats/read-observations.ts';
import { type IgnoredField, type ReadTable, type Refusals, readTable } from '../formats/read-table.ts';
import { listTableMistakes } from '../formats/time-mistake.ts';
import type { Observation } from '../schema/observation.ts';
import { countCopies, type ObservationTable } from '../schema/observation-table.ts';

export function createFormatOption(formats: readonly string[] = FORMATS): Option {
  return new Option('--format <name>', 'what the input is; detected when left out').choices(formats);
}

/** Required for logs of requests and files of benchmarks. */
export function createKvCapacityOption(): Option {
  return new Option(
    '--kv-capacity-tokens <tokens>',
    'for logs of requests and benchmarks: tokens that the KV cache of one server holds',
  ).argParser(parsePositive);
}

/** Required for files of benchmarks that do not name their servers. */
export function createServerOption(): Option {
  return new Option('--server <name>', 'for benchmarks: the server that was measured, as callers name it in server_ip');
}

/** The options of a command for what is read. */
export interface RowFiles {
  readonly input: readonly string[];
  readonly format?: Format;
  readonly kvCapacityTokens?: number;
  readonly server?: string;
}

export interface RowReading {
  /** The verb for a refusal: "train", "evaluate", …. */
  readonly action: string;
  readonly targetModel: string;
  readonly onProgress: (rows: number) => void;
  /** Returns why a row is left out; undefined accepts it. */
  readonly check: (observation: Observation) => string | undefined;
}

/** Reads files of observations and warns of likely mistakes in them. Throws without usable rows. */
export async function readRows(
  { input, format, kvCapacityTokens, server }: RowFiles,
  { action, ...reading }: RowReading,
): Promise<ReadTable> {
  const read = await readTable(input, { format, kvCapacityTokens, server, stdin: process.stdin, ...reading });
  warnOfIgnored(read.ignoredFields);
  checkAnyRow(read, action);
  warnOfMistakes(read.table);
  return read;
}

export function formatRefusals(refusals: readonly Refusals[]): string {
  if (refusals.length === 0) return '';
  return formatTable(
    ['rows', 'why', 'first at'],
    refusals.map(({ reason, rows, firstAt }) => [rows, reason, firstAt]),
  );
}

function formatIgnored(fields: readonly IgnoredField[]): string {
  return fields.map(({ name, rows }) => `${name} (${rows} ${rows === 1 ? 'row' : 'rows'})`).join(', ');
}

/** Warns of unused fields: a misspelt one means a metric that is 0 in every row. */
export function warnOfIgnored(fields: readonly IgnoredField[]): void {
  if (fields.length > 0) remark(`Fields that are not used: ${formatIgnored(fields)}`);
}

export function remarkAll(mistakes: readonly string[]): void {
  for (const mistake of mistakes) remark(mistake);
}

/** Keeps the rows: such a fast or slow server may be real, and wrong times of day affect only the history of servers. */
export function warnOfMistakes(table: ObservationTable): void {
  remarkAll(listTableMistakes(table));
}

/** Warns of copies: a row that was learned from cannot test the model, and neither can its copy. */
export function warnOfCopies(table: ObservationTable): void {
  remarkCopies(countCopies(table), ` of ${table.count}`);
}

/** `ofAll` is the text for the number of all rows, where it is known. */
export function remarkCopies(copies: number, ofAll = ''): void {
  if (copies === 0) return;
  const rows = copies === 1 ? 'row is a copy' : 'rows are copies';
  remark(
    `${copies}${ofAll} ${rows} of another one: where one is learned from and the other judged, errors are too small`,
  );
}

/** Throws without usable rows, with the reasons. The action is "train", "evaluate", …. */
export function checkAnyRow({ table, refusals, ...fields }: ReadTable, action: string): void {
  if (table.count > 0) return;
  if (refusals.length === 0) throw new Failure('invalid', `Cannot ${action}: the input is empty`);
  throw new Failure('invalid', `Cannot ${action}: no row is usable\n${formatRefusals(refusals)}${hintAtNames(fields)}`);
}

function hintAtNames({ ignoredFields, knownFields }: Pick<ReadTable, 'ignoredFields' | 'knownFields'>): string {
  if (ignoredFields.some(({ name }) => name === 'first_token_ms'))
    return '\nThis looks like a log of requests: read it with --format requests and --kv-capacity-tokens';
  return ignoredFields.length === 0 ? '' : `\nFields that are known: ${knownFields.join(', ')}`;
}
