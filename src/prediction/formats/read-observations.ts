/** Reads observations from files and streams, row by row, with the line and reason of each refused row. */
import { Failure } from '../../errors.ts';
import { BENCHMARK_FORMATS, type BenchmarkFormat, toFileWords } from './benchmarks/benchmarks.ts';
import { type ByteSource, openBytes } from './byte-source.ts';
import { type NumberedRecord, readCsvRecords } from './csv.ts';
import { detectText, HEAD_BYTES, isDetectable } from './detect-format.ts';
import { type FieldNames, isKnownField, listIgnoredFields, type RawRecord, toOwnNames } from './field-names.ts';
import { type Line, readLines } from './lines.ts';
import { readParquetRecords } from './parquet.ts';
import { parseRecord, type ReadRow, type RowPlace } from './parse-record.ts';
import { readBenchmark } from './read-benchmark.ts';
import { KNOWN_REQUEST_FIELDS, type RequestsOptions, readRequests } from './requests.ts';

/** `jsonl` and `llm-d` are JSON lines with our field names or with llm-d's; CSV and Parquet may have either. */
export const TABLE_FORMATS = ['jsonl', 'llm-d', 'csv', 'parquet'] as const;
export type TableFormat = (typeof TABLE_FORMATS)[number];
/** Tables have one observation a row. Logs of requests and results of benchmarks are converted to such rows. */
export const FORMATS = [...TABLE_FORMATS, 'requests', ...BENCHMARK_FORMATS] as const;
export type Format = (typeof FORMATS)[number];

export interface ReadOptions {
  /** Detected when undefined. */
  readonly format: Format | undefined;
  /** The target model of rows that do not name one; of all rows of a benchmark, unless empty. */
  readonly targetModel: string;
  /** Tokens that the KV cache of one server holds; the cache use at each request is computed with it. */
  readonly kvCapacityTokens?: number | undefined;
  /** The server that a benchmark measured. */
  readonly server?: string | undefined;
  /** Read for the file name `-`. */
  readonly stdin: AsyncIterable<Uint8Array>;
  /** Names the file in messages, and the run of a benchmark; its path when undefined. */
  readonly name?: string | undefined;
  /** A file with more rows, usable or not, is refused; no limit when undefined. */
  readonly maxRows?: number | undefined;
  /** Called for each unused field of each row. */
  readonly onIgnoredField?: (name: string) => void;
  /** Aborts a read that is under way. */
  readonly signal?: AbortSignal | undefined;
}

/** `path` may be `-`. */
export async function* readObservations(path: string, options: ReadOptions): AsyncGenerator<ReadRow> {
  const { name = describePath(path), maxRows, server, stdin, signal } = options;
  const source = await openBytes(path, { stdin, headBytes: HEAD_BYTES, isEnough: isDetectable, signal });
  const file: NamedFile = { path, name, source };
  const format = options.format ?? detectSource(file);
  if (format === 'requests') {
    const records = openTable(file, { format: detectSource(file), maxRows });
    yield* readRequests(limitRows(records, file, maxRows), readRequestsOptions(options, format));
    return;
  }
  if (isBenchmark(format)) {
    const records = readBenchmark(source.chunks, { format, path: name, server });
    for await (const row of readRequests(limitRows(records, file, maxRows), readRequestsOptions(options, format)))
      yield 'refusal' in row ? { ...row, refusal: toFileWords(format, row.refusal) } : row;
    return;
  }
  const names = FIELD_NAMES[options.format as TableFormat];
  const records = limitRows(openTable(file, { format, maxRows }), file, maxRows);
  for await (const { line, record: raw, problem } of records) {
    if (raw === undefined) {
      yield { line, refusal: problem ?? 'not a record' };
      continue;
    }
    const record = toOwnNames(raw);
    for (const field of listIgnoredFields(record, names)) options.onIgnoredField?.(field);
    yield { line, ...parseRecord(record, names, options.targetModel) };
  }
}

/** Returns `file:line` for a message. */
export function describePlace(path: string, { line, place }: RowPlace): string {
  return `${describePath(path)}:${place ?? line}`;
}

/** Returns the name of a file in messages, which also names the run of a benchmark. */
export function describePath(path: string): string {
  return path === '-' ? 'standard input' : path;
}

function readRequestsOptions(options: ReadOptions, format: Format): RequestsOptions {
  const { kvCapacityTokens, targetModel, onIgnoredField } = options;
  if (kvCapacityTokens === undefined)
    throw new Failure(
      'invalid',
      `Cannot read ${format}: --kv-capacity-tokens must say how many tokens the KV cache of one server holds`,
    );
  return { kvCapacityTokens, targetModel, onIgnoredField };
}

const FIELD_NAMES: Readonly<Record<TableFormat, FieldNames | undefined>> = {
  jsonl: 'trivet',
  'llm-d': 'llm-d',
  csv: undefined,
  parquet: undefined,
};

function isBenchmark(format: Format | 'json'): format is BenchmarkFormat {
  return (BENCHMARK_FORMATS as readonly string[]).includes(format);
}

/** Returns true also for a format that is still to be detected: most files are tables. */
export function isTableFormat(format: Format | undefined): boolean {
  return format === undefined || (TABLE_FORMATS as readonly string[]).includes(format);
}

/** Opens the records of a file or of standard input, unparsed. */
export async function openRecords(
  path: string,
  { format, stdin }: { readonly format: TableFormat | undefined; readonly stdin: AsyncIterable<Uint8Array> },
): Promise<AsyncIterable<NumberedRecord>> {
  const source = await openBytes(path, { stdin, headBytes: HEAD_BYTES, isEnough: isDetectable });
  const file = { path, name: describePath(path), source };
  return openTable(file, { format: format ?? detectSource(file) });
}

type Detected = 'json' | TableFormat | BenchmarkFormat;

interface NamedFile {
  readonly path: string;
  /** Replaces the path in messages. */
  readonly name: string;
  readonly source: ByteSource;
}

interface TableOptions {
  readonly format: Detected;
  /** Checked for Parquet before rows are read: a few bytes can declare very many rows. */
  readonly maxRows?: number | undefined;
}

function openTable(
  file: NamedFile,
  { format, maxRows = Number.POSITIVE_INFINITY }: TableOptions,
): AsyncIterable<NumberedRecord> {
  if (format === 'parquet') return openParquet(file, maxRows);
  const lines = readLines(file.source.chunks);
  return format === 'csv' || format === 'lmbench' ? readCsvRecords(lines) : readJsonRecords(lines);
}

async function* limitRows(
  records: AsyncIterable<NumberedRecord>,
  { name }: NamedFile,
  maxRows = Number.POSITIVE_INFINITY,
): AsyncGenerator<NumberedRecord> {
  let count = 0;
  for await (const record of records) {
    if (++count > maxRows) throw new Failure('invalid', `Cannot read "${name}": it must have at most ${maxRows} rows`);
    yield record;
  }
}

function openParquet({ path, name }: NamedFile, maxRows: number): AsyncIterable<NumberedRecord> {
  if (path === '-')
    throw new Failure('invalid', 'Cannot read Parquet from standard input: it must be a file, its index is at the end');
  return readParquetRecords(path, { name, maxRows, isKnown: isKnownColumn });
}

function detectSource({ name, source: { head } }: NamedFile): Exclude<Detected, 'jsonl' | 'llm-d'> {
  if (Buffer.from(head.subarray(0, 4)).equals(PARQUET_MAGIC)) return 'parquet';
  return detectText(new TextDecoder().decode(head), name);
}

function isKnownColumn(name: string): boolean {
  return isKnownField(name) || KNOWN_REQUEST_FIELDS.has(name);
}

const PARQUET_MAGIC = Buffer.from('PAR1');

async function* readJsonRecords(lines: AsyncIterable<Line>): AsyncGenerator<NumberedRecord> {
  for await (const { number, text } of lines) {
    const record = parseJson(text);
    yield record === undefined ? { line: number, record, problem: 'not a JSON object' } : { line: number, record };
  }
}

function parseJson(text: string): RawRecord | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as RawRecord) : undefined;
  } catch {
    return undefined;
  }
}
