/** Observations out of files and streams, row by row. A row that cannot be used comes with its line and the reason. */
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { describeError, Failure } from '../../errors.ts';
import type { Observation } from '../schema/observation.ts';
import { type NumberedRecord, readCsvRecords } from './csv.ts';
import { type FieldNames, listIgnoredFields, type RawRecord, toOwnNames } from './field-names.ts';
import { type Line, readLines } from './lines.ts';
import { readParquetRecords } from './parquet.ts';
import { parseRecord } from './record.ts';
import { type RequestsOptions, readRequests } from './requests.ts';

/** `jsonl` and `llm-d` are JSON lines with our field names or llm-d's; CSV and Parquet may have either. */
export const TABLE_FORMATS = ['jsonl', 'llm-d', 'csv', 'parquet'] as const;
export type TableFormat = (typeof TABLE_FORMATS)[number];
/** Of a log of requests, rows are made. */
export const FORMATS = [...TABLE_FORMATS, 'requests'] as const;
export type Format = (typeof FORMATS)[number];

export type ReadRow =
  | { readonly line: number; readonly observation: Observation }
  | { readonly line: number; readonly refusal: string };

export interface ReadOptions {
  /** Detected when undefined. */
  readonly format: Format | undefined;
  /** The target model of rows that name none. */
  readonly targetModel: string;
  /** Tokens that the KV cache of one server holds: what `requests` needs to know the cache's use. */
  readonly kvCapacityTokens?: number | undefined;
  /** What `-` reads. */
  readonly stdin: AsyncIterable<Uint8Array>;
  /** Hears of each field of each row that nothing is made of. */
  readonly onIgnoredField?: (name: string) => void;
}

/** `path` may be `-`. */
export async function* readObservations(path: string, options: ReadOptions): AsyncGenerator<ReadRow> {
  if (options.format === 'requests') {
    yield* readRequests(await openRecords(path, options), readRequestsOptions(options));
    return;
  }
  const names = FIELD_NAMES[options.format ?? 'csv'];
  for await (const { line, record: raw, problem } of await openRecords(path, options)) {
    if (raw === undefined) {
      yield { line, refusal: problem ?? 'not a record' };
      continue;
    }
    const record = toOwnNames(raw);
    for (const name of listIgnoredFields(record, names)) options.onIgnoredField?.(name);
    yield { line, ...parseRecord(record, names, options.targetModel) };
  }
}

function readRequestsOptions({ kvCapacityTokens, targetModel, onIgnoredField }: ReadOptions): RequestsOptions {
  if (kvCapacityTokens === undefined)
    throw new Failure('invalid', 'Cannot read requests: --kv-capacity-tokens must say how many a server holds');
  return { kvCapacityTokens, targetModel, onIgnoredField };
}

const FIELD_NAMES: Readonly<Record<Format, FieldNames | undefined>> = {
  jsonl: 'trivet',
  'llm-d': 'llm-d',
  csv: undefined,
  parquet: undefined,
  requests: undefined,
};

/** The records of a file or of standard input, before anything is made of them. */
export async function openRecords(
  path: string,
  { format, stdin }: { readonly format: Format | undefined; readonly stdin: AsyncIterable<Uint8Array> },
): Promise<AsyncIterable<NumberedRecord>> {
  if (path === '-') return openStream(stdin, format);
  const detected = format === undefined || format === 'requests' ? await detectFormat(path) : format;
  if (detected === 'parquet') return readParquetRecords(path);
  const lines = readLines(createReadStream(path));
  return detected === 'csv' ? readCsvRecords(lines) : readJsonRecords(lines);
}

function openStream(stdin: AsyncIterable<Uint8Array>, format: Format | undefined): AsyncIterable<NumberedRecord> {
  if (format === 'parquet')
    throw new Failure('invalid', 'Cannot read Parquet from standard input: it must be a file, its index is at the end');
  const lines = readLines(stdin);
  if (format !== undefined && format !== 'requests')
    return format === 'csv' ? readCsvRecords(lines) : readJsonRecords(lines);
  return detectByFirstLine(lines);
}

async function* detectByFirstLine(lines: AsyncGenerator<Line>): AsyncGenerator<NumberedRecord> {
  const first = await lines.next();
  if (first.done) return;
  const again = (async function* () {
    yield first.value;
    yield* lines;
  })();
  yield* detectText(first.value.text, 'standard input') === 'json' ? readJsonRecords(again) : readCsvRecords(again);
}

async function detectFormat(path: string): Promise<'json' | 'csv' | 'parquet'> {
  const head = await readHead(path);
  if (head.startsWith('PAR1')) return 'parquet';
  return detectText(head, path);
}

function detectText(head: string, path: string): 'json' | 'csv' {
  const start = head.trimStart();
  if (start.startsWith('['))
    throw new Failure('invalid', `Cannot read "${path}": it is a JSON array, it must have one JSON object a line`);
  return start.startsWith('{') ? 'json' : 'csv';
}

async function readHead(path: string): Promise<string> {
  try {
    await using file = await open(path);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(64), 0, 64, 0);
    return buffer.toString('latin1', 0, bytesRead).replace(/^\u00EF\u00BB\u00BF/, '');
  } catch (error) {
    throw new Failure('invalid', `Cannot read "${path}": ${describeError(error)}`);
  }
}

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
