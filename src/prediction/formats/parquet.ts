import { asyncBufferFromFile, type FileMetaData, parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { describeError, Failure } from '../../errors.ts';
import { MAX_COLUMNS, type NumberedRecord } from './csv.ts';
import type { RawRecord } from './field-names.ts';

/** Rows are read this many at a time, so that a large file needs little memory. */
const ROWS_AT_ONCE = 20_000;

/** Writers split columns into pages of 1 MiB; a page that claims far more is there to fill the memory. */
const MAX_PAGE_BYTES = 67_108_864;
/** A row group is in memory as a whole while its rows are read. */
const MAX_GROUP_ROWS = 10_000_000;

/** The decompressors, none of which makes room for more than a page may be. */
const boundedCompressors = Object.fromEntries(
  Object.entries(compressors).map(([codec, decompress]) => [
    codec,
    (input: Uint8Array, outputLength: number): Uint8Array => {
      if (!(outputLength >= 0 && outputLength <= MAX_PAGE_BYTES))
        throw new RangeError(`a page must have at most ${MAX_PAGE_BYTES} bytes, got ${outputLength}`);
      return decompress(input, outputLength);
    },
  ]),
);

/** Throws what is wrong with the numbers that the end of the file declares. */
function checkMetadata({ num_rows, row_groups, schema }: FileMetaData): void {
  if (schema.length - 1 > MAX_COLUMNS)
    throw new RangeError(`it must have at most ${MAX_COLUMNS} columns, got ${schema.length - 1}`);
  let rows = 0n;
  for (const group of row_groups) {
    if (group.num_rows < 0n || group.num_rows > BigInt(MAX_GROUP_ROWS))
      throw new RangeError(`a row group must have at most ${MAX_GROUP_ROWS} rows, got ${group.num_rows}`);
    rows += group.num_rows;
  }
  if (rows !== num_rows) throw new RangeError(`its row groups have ${rows} rows, and it says ${num_rows}`);
}

/** The rows of a Parquet file, numbered from 1. */
export async function* readParquetRecords(path: string): AsyncGenerator<NumberedRecord> {
  const file = await asyncBufferFromFile(path);
  const refuse = (error: unknown): never => {
    throw new Failure('invalid', `Cannot read "${path}" as Parquet: ${describeError(error)}`);
  };
  const metadata = await parquetMetadataAsync(file)
    .then((read) => {
      checkMetadata(read);
      return read;
    })
    .catch(refuse);
  const count = Number(metadata.num_rows);
  for (let rowStart = 0; rowStart < count; rowStart += ROWS_AT_ONCE) {
    const rowEnd = Math.min(count, rowStart + ROWS_AT_ONCE);
    const options = { file, metadata, compressors: boundedCompressors, rowStart, rowEnd };
    const rows = (await parquetReadObjects(options).catch(refuse)) as RawRecord[];
    for (const [i, record] of rows.entries()) yield { line: rowStart + i + 1, record };
  }
}
