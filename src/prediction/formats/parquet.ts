/** Reads the rows of a Parquet file in groups, within limits of memory. */
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import {
  type AsyncBuffer,
  asyncBufferFromFile,
  type Compressors,
  type FileMetaData,
  parquetMetadataAsync,
  parquetReadObjects,
  type RowGroup,
} from 'hyparquet';
import { compressors as knownCompressors } from 'hyparquet-compressors';
import { describeError, Failure } from '../../errors.ts';
import type { NumberedRecord } from './csv.ts';
import {
  type Allowance,
  checkFooter,
  checkMetadata,
  checkPages,
  createAllowance,
  PARQUET_LIMITS,
} from './parquet-check.ts';

/** Rows are read this many at a time, so that a large file needs little memory. */
const ROWS_AT_ONCE = 20_000;
/** Each piece reads all bytes of its row group, so the rows of a large group are read in larger pieces. */
const MAX_PIECES = 16;

type Decompress = (input: Uint8Array, outputLength: number) => Uint8Array;

/** Decompressors of Node, which stop at the length limit, and those of the library for formats that Node lacks. */
const compressors: Readonly<Record<string, Decompress>> = bound({
  ...knownCompressors,
  GZIP: (input, maxOutputLength) => gunzipSync(input, { maxOutputLength }),
  BROTLI: (input, maxOutputLength) => brotliDecompressSync(input, { maxOutputLength }),
  ZSTD: (input, maxOutputLength) => zstdDecompressSync(input, { maxOutputLength }),
});

/** Returns decompressors that reserve no more memory than a page may take. */
function bound(all: Readonly<Record<string, Decompress>>): Readonly<Record<string, Decompress>> {
  const limited = (decompress: Decompress) => (input: Uint8Array, bytes: number) => {
    if (!(bytes >= 0 && bytes <= PARQUET_LIMITS.pageBytes))
      throw new RangeError(`a page must have at most ${PARQUET_LIMITS.pageBytes} bytes, got ${bytes}`);
    return bytes === 0 ? new Uint8Array(0) : decompress(input, bytes);
  };
  return Object.fromEntries(Object.entries(all).map(([codec, decompress]) => [codec, limited(decompress)]));
}

interface ParquetOptions {
  /** Replaces the path in messages. */
  readonly name: string;
  /** A file with more rows is refused before any is read. */
  readonly maxRows: number;
  /** Other columns are not decoded, and are null in each row. */
  readonly isKnown: (column: string) => boolean;
}

/** Yields the rows of a Parquet file, numbered from 1. */
export async function* readParquetRecords(
  path: string,
  { name, ...options }: ParquetOptions,
): AsyncGenerator<NumberedRecord> {
  try {
    yield* readChecked(await asyncBufferFromFile(path), options);
  } catch (error) {
    throw new Failure('invalid', `Cannot read "${name}" as Parquet: ${describeError(error)}`);
  }
}

async function* readChecked(
  file: AsyncBuffer,
  { maxRows, isKnown }: Omit<ParquetOptions, 'name'>,
): AsyncGenerator<NumberedRecord> {
  await checkFooter(file);
  const metadata = await parquetMetadataAsync(file);
  checkMetadata(metadata, file.byteLength);
  if (metadata.num_rows > maxRows)
    throw new RangeError(`it must have at most ${maxRows} rows, got ${metadata.num_rows}`);
  const nullable = metadata.schema.slice(1).map((column) => column.repetition_type !== 'REQUIRED');
  const allowance = createAllowance(file.byteLength);
  let groupStart = 0;
  for (const group of metadata.row_groups) {
    await checkGroup(file, group, { nullable, allowance });
    const groupEnd = groupStart + Number(group.num_rows);
    const step = Math.max(ROWS_AT_ONCE, Math.ceil(Number(group.num_rows) / MAX_PIECES));
    for (let rowStart = groupStart; rowStart < groupEnd; rowStart += step) {
      const rowEnd = Math.min(groupEnd, rowStart + step);
      yield* readRows({ file, metadata, compressors, rowStart, rowEnd }, isKnown);
    }
    groupStart = groupEnd;
  }
}

interface Rows {
  readonly file: AsyncBuffer;
  readonly metadata: FileMetaData;
  readonly compressors: Compressors;
  readonly rowStart: number;
  readonly rowEnd: number;
}

/** Reads one column at a time: with several, the library leaves all rejections but the first unhandled. */
async function* readRows(rows: Rows, isKnown: ParquetOptions['isKnown']): AsyncGenerator<NumberedRecord> {
  const names = rows.metadata.schema.slice(1).map(({ name }) => name);
  const empty = Object.fromEntries(names.map((name) => [name, null as unknown]));
  const records = Array.from({ length: rows.rowEnd - rows.rowStart }, () => ({ ...empty }));
  for (const name of names.filter(isKnown))
    for (const [row, cell] of (await parquetReadObjects({ ...rows, columns: [name] })).entries())
      records[row]![name] = cell[name];
  for (const [row, record] of records.entries()) yield { line: rows.rowStart + row + 1, record };
}

interface GroupRules {
  /** For each column, true if it may have nulls. */
  readonly nullable: readonly boolean[];
  readonly allowance: Allowance;
}

async function checkGroup(file: AsyncBuffer, group: RowGroup, { nullable, allowance }: GroupRules): Promise<void> {
  for (const [c, { meta_data: column }] of group.columns.entries()) {
    if (column === undefined) continue;
    const start = Number(column.dictionary_page_offset || column.data_page_offset);
    const chunk = await file.slice(start, start + Number(column.total_compressed_size));
    const { codec } = column;
    const decompress = codec === 'UNCOMPRESSED' ? (page: Uint8Array) => page : compressors[codec];
    if (decompress === undefined) throw new RangeError(`unsupported compression ${codec}`);
    checkPages(chunk, column, { isNullable: nullable[c]!, allowance, decompress });
  }
}
