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

/** Logs of requests and files of benchmarks need this. */
export function createKvCapacityOption(): Option {
  return new Option(
    '--kv-capacity-tokens <tokens>',
    'for logs of requests and benchmarks: tokens that the KV cache of one server holds',
  ).argParser(parsePositive);
}

/** Files of benchmarks need this. */
export function createServerOption(): Option {
  return new Option('--server <name>', 'for benchmarks: the server that was measured, as callers name it in server_ip');
}

/** The options of a command that say what is read. */
export interface RowFiles {
  readonly input: readonly string[];
  readonly format?: Format;
  readonly kvCapacityTokens?: number;
  readonly server?: string;
}

export interface RowReading {
  /** For a refusal: "train", "evaluate", …. */
  readonly action: string;
  readonly targetModel: string;
  readonly onProgress: (rows: number) => void;
  /** Why a row is left out, or undefined. */
  readonly check: (observation: Observation) => string | undefined;
}

/** Reads files of observations and warns of what looks wrong in them. Throws unless there are rows. */
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

/** A misspelt field would else be a metric that is 0 everywhere. */
export function warnOfIgnored(fields: readonly IgnoredField[]): void {
  if (fields.length > 0) remark(`Fields that nothing is made of: ${formatIgnored(fields)}`);
}

export function remarkAll(mistakes: readonly string[]): void {
  for (const mistake of mistakes) remark(mistake);
}

/** The rows are kept: such a fast or slow server may be real, and times of day matter to what is learned of a server's past only. */
export function warnOfMistakes(table: ObservationTable): void {
  remarkAll(listTableMistakes(table));
}

/** A row that was learned from is no test: errors of its copies say nothing. */
export function warnOfCopies(table: ObservationTable): void {
  remarkCopies(countCopies(table), ` of ${table.count}`);
}

/** `ofAll` says of how many rows, where that is known. */
export function remarkCopies(copies: number, ofAll = ''): void {
  if (copies === 0) return;
  const rows = copies === 1 ? 'row is a copy' : 'rows are copies';
  remark(
    `${copies}${ofAll} ${rows} of another one: where one is learned from and the other judged, errors are too small`,
  );
}

/** Throws unless there are rows, saying what was read instead. The action is "train", "evaluate", …. */
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
