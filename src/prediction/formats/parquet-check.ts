/**
 * Refuses a Parquet file that declares more than it has, before the library reserves memory for it. The library reserves memory for
 * any number it reads. The files come from commands and from callers of the administration API.
 */
import type { AsyncBuffer, ColumnMetaData, FileMetaData, PageHeader, RowGroup, SchemaElement } from 'hyparquet';
import { parquetHeader } from 'hyparquet/src/column.js';
import { checkRuns } from './parquet-runs.ts';

export const PARQUET_LIMITS = {
  columns: 1000,
  /** A whole row group is in memory while its rows are read. */
  groupRows: 10_000_000,
  /** Writers split columns into pages of 1 MiB; a page that claims far more is an attack on memory. */
  pageBytes: 67_108_864,
  footerBytes: 67_108_864,
  /** DEFLATE compresses to a thousandth at most. `freeBytes` is allowed on top, for small files. */
  expansion: 1000,
  freeBytes: 67_108_864,
} as const;

/** The deepest nesting of structures in a footer: schema, row group, column, statistics, geometry. */
const MAX_DEPTH = 16;
/** The length of a 64-bit varint, with seven bits in each byte. */
const MAX_VARINT_BYTES = 10;
/** The length of a decimal of 38 digits, and of a UUID. */
const MAX_FIXED_BYTES = 16;

/** The encodings that are read. In others, values can take far more memory than their bytes, such as texts that share a prefix. */
const ENCODINGS: ReadonlySet<string | undefined> = new Set([
  'PLAIN',
  'PLAIN_DICTIONARY',
  'RLE',
  'RLE_DICTIONARY',
  'BYTE_STREAM_SPLIT',
]);

/** Throws unless the footer is a structure of Thrift's compact protocol that can be read in linear time. */
export async function checkFooter(file: AsyncBuffer): Promise<void> {
  if (file.byteLength < 12) throw new RangeError('it is too short');
  const tail = new DataView(await file.slice(file.byteLength - 8, file.byteLength));
  const length = tail.getUint32(0, true);
  if (length > PARQUET_LIMITS.footerBytes || length > file.byteLength - 12)
    throw new RangeError(`its footer must have at most ${PARQUET_LIMITS.footerBytes} bytes and fit, got ${length}`);
  const footer = await file.slice(file.byteLength - 8 - length, file.byteLength - 8);
  skipStruct({ view: new DataView(footer), offset: 0 }, 0);
}

/** Throws unless the numbers that the footer declares are possible. */
export function checkMetadata({ num_rows, row_groups, schema }: FileMetaData, fileBytes: number): void {
  checkSchema(schema);
  const columns = schema.length - 1;
  let rows = 0n;
  let bytes = 0n;
  for (const group of row_groups) {
    checkCount('a row group', 'rows', [group.num_rows, PARQUET_LIMITS.groupRows]);
    rows += group.num_rows;
    if (group.columns.length !== columns) throw new RangeError(`a row group must have ${columns} columns`);
    for (const { meta_data } of group.columns) bytes += checkColumn(meta_data, group, fileBytes);
  }
  if (rows !== num_rows) throw new RangeError(`its row groups have ${rows} rows, and it says ${num_rows}`);
  if (bytes > BigInt(fileBytes)) throw new RangeError('its columns overlap');
  const most = PARQUET_LIMITS.expansion * fileBytes;
  if (rows * BigInt(columns) > BigInt(most))
    throw new RangeError(`it must have at most ${most} values for its size, got ${rows * BigInt(columns)}`);
}

function checkSchema([root, ...columns]: readonly SchemaElement[]): void {
  if (columns.length > PARQUET_LIMITS.columns)
    throw new RangeError(`it must have at most ${PARQUET_LIMITS.columns} columns, got ${columns.length}`);
  const nested = columns.find((column) => column.type === undefined || column.repetition_type === 'REPEATED');
  if (nested !== undefined || root?.num_children !== columns.length)
    throw new RangeError(`its columns must not be nested, got "${nested?.name ?? ''}"`);
  for (const { name, type, type_length = 1 } of columns)
    if (type === 'FIXED_LEN_BYTE_ARRAY' && !(type_length >= 1 && type_length <= MAX_FIXED_BYTES))
      throw new RangeError(`values of "${name}" must have 1 to ${MAX_FIXED_BYTES} bytes, got ${type_length}`);
}

/** Returns the compressed bytes of the column. */
function checkColumn(column: ColumnMetaData | undefined, group: RowGroup, fileBytes: number): bigint {
  if (column === undefined) throw new RangeError('it lacks the metadata of a column');
  const name = column.path_in_schema.join('.');
  const { total_compressed_size: size, num_values } = column;
  const start = column.dictionary_page_offset || column.data_page_offset;
  if (!(start >= 4n && size >= 0n && column.data_page_offset >= start && start + size <= BigInt(fileBytes)))
    throw new RangeError(`column "${name}" must lie within the file, got bytes ${start} to ${start + size}`);
  if (num_values !== group.num_rows)
    throw new RangeError(`column "${name}" must have ${group.num_rows} values, got ${num_values}`);
  return size;
}

/** How many decompressed bytes the remaining pages of the file may have. */
export interface Allowance {
  bytes: number;
}

export const createAllowance = (fileBytes: number): Allowance => ({
  bytes: PARQUET_LIMITS.freeBytes + PARQUET_LIMITS.expansion * fileBytes,
});

export interface PageRules {
  readonly isNullable: boolean;
  readonly allowance: Allowance;
  readonly decompress: (page: Uint8Array, bytes: number) => Uint8Array;
}

/** Throws unless the pages of a column are well formed; called before they are read. */
export function checkPages(chunk: ArrayBuffer, column: ColumnMetaData, rules: PageRules): void {
  const reader = { view: new DataView(chunk), offset: 0 };
  let left = Number(column.num_values);
  while (reader.offset < chunk.byteLength - 1 && left > 0) {
    skipStruct({ ...reader }, 0);
    const header = parquetHeader(reader);
    const { compressed_page_size: size, uncompressed_page_size: expanded } = header;
    checkCount('a page', 'bytes', [size, chunk.byteLength - reader.offset]);
    checkCount('a page', 'bytes', [expanded, PARQUET_LIMITS.pageBytes]);
    rules.allowance.bytes -= expanded;
    if (rules.allowance.bytes < 0)
      throw new RangeError(`it must become at most ${PARQUET_LIMITS.expansion} times as long as it is`);
    const values = checkPage(header, { type: column.type, left });
    left -= values;
    if (isDataPage(header))
      checkRuns(new Uint8Array(chunk, reader.offset, size), header, { ...rules, type: column.type });
    reader.offset += size;
  }
}

function isDataPage({ type, data_page_header, data_page_header_v2 }: PageHeader): boolean {
  const header = type === 'DATA_PAGE' ? data_page_header : data_page_header_v2;
  return header !== undefined && (type === 'DATA_PAGE' || type === 'DATA_PAGE_V2');
}

/** Returns how many values of the column the page has. */
function checkPage(header: PageHeader, { type, left }: { readonly type: string; readonly left: number }): number {
  const page = header.type === 'DATA_PAGE' ? header.data_page_header : header.data_page_header_v2;
  if (header.type === 'DICTIONARY_PAGE') {
    // A value takes at least one bit.
    checkCount('a dictionary', 'values', [
      header.dictionary_page_header?.num_values,
      8 * header.uncompressed_page_size,
    ]);
    return 0;
  }
  if (page === undefined || !isDataPage(header)) return 0;
  checkCount('a page', 'values', [page.num_values, left]);
  if (!ENCODINGS.has(page.encoding))
    throw new RangeError(`a ${type} must be written plainly or by a dictionary, got ${page.encoding}`);
  return page.num_values;
}

function checkCount(what: string, unit: string, [count, limit]: [count: number | bigint | undefined, limit: number]) {
  if (!(count !== undefined && count >= 0 && count <= limit))
    throw new RangeError(`${what} must have at most ${limit} ${unit}, got ${count}`);
}

interface Reader {
  readonly view: DataView;
  offset: number;
}

function skipStruct(reader: Reader, depth: number): void {
  if (depth > MAX_DEPTH) throw new RangeError(`its metadata must be at most ${MAX_DEPTH} levels deep`);
  for (;;) {
    const field = reader.view.getUint8(reader.offset++);
    if ((field & 15) === 0) return;
    if (field >> 4 === 0) skipVarint(reader);
    skipElement(reader, field & 15, depth);
  }
}

/** https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md */
function skipElement(reader: Reader, type: number, depth: number): void {
  if (type === 3) reader.offset += 1;
  else if (type >= 4 && type <= 6) skipVarint(reader);
  else if (type === 7) reader.offset += 8;
  else if (type === 8) skipBytes(reader);
  else if (type === 9) skipList(reader, depth);
  else if (type === 12) skipStruct(reader, depth + 1);
  else if (type > 2) throw new RangeError(`its metadata has an unknown type, ${type}`);
}

function skipBytes(reader: Reader): void {
  const length = skipVarint(reader);
  checkCount('a text of its metadata', 'bytes', [length, reader.view.byteLength - reader.offset]);
  reader.offset += length;
}

function skipList(reader: Reader, depth: number): void {
  const head = reader.view.getUint8(reader.offset++);
  const count = head >> 4 === 15 ? skipVarint(reader) : head >> 4;
  // Each element takes at least one byte.
  checkCount('a list of its metadata', 'elements', [count, reader.view.byteLength - reader.offset]);
  const type = (head & 15) <= 2 ? 3 : head & 15;
  for (let i = 0; i < count; i++) skipElement(reader, type, depth);
}

/** Returns its value, which is exact below 2^53. */
function skipVarint(reader: Reader): number {
  let value = 0;
  for (let i = 0; i < MAX_VARINT_BYTES; i++) {
    const byte = reader.view.getUint8(reader.offset++);
    value += (byte & 0x7f) * 2 ** (7 * i);
    if (byte < 0x80) return value;
  }
  throw new RangeError(`a number of its metadata must have at most ${MAX_VARINT_BYTES} bytes`);
}
