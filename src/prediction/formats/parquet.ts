import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { describeError, Failure } from '../../errors.ts';
import type { NumberedRecord } from './csv.ts';
import type { RawRecord } from './field-names.ts';

/** Rows are read this many at a time, so that a large file needs little memory. */
const ROWS_AT_ONCE = 20_000;

/** The rows of a Parquet file, numbered from 1. */
export async function* readParquetRecords(path: string): AsyncGenerator<NumberedRecord> {
  const file = await asyncBufferFromFile(path);
  const metadata = await parquetMetadataAsync(file).catch((error: unknown) => {
    throw new Failure('invalid', `Cannot read "${path}" as Parquet: ${describeError(error)}`);
  });
  const count = Number(metadata.num_rows);
  for (let rowStart = 0; rowStart < count; rowStart += ROWS_AT_ONCE) {
    const rowEnd = Math.min(count, rowStart + ROWS_AT_ONCE);
    const rows = (await parquetReadObjects({ file, metadata, compressors, rowStart, rowEnd })) as RawRecord[];
    for (const [i, record] of rows.entries()) yield { line: rowStart + i + 1, record };
  }
}
