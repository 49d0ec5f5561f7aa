/** Parquet files, written by another library. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { readTable } from './read-table.ts';

type Columns = Parameters<typeof parquetWriteBuffer>[0]['columnData'];

/** Reads what a file with these bytes has. */
async function readParquet(bytes: Uint8Array) {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-parquet-'));
  try {
    const filename = join(folder, 'rows.bin');
    writeFileSync(filename, bytes);
    return await readTable([filename], { format: undefined, targetModel: 'm', stdin: process.stdin });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function write(columnData: Columns): Uint8Array {
  return new Uint8Array(parquetWriteBuffer({ columnData }));
}

test('Parquet is recognised and read, big integers too', async () => {
  const { table, refusals } = await readParquet(
    write([
      { name: 'kv_cache_percentage', data: [0.5, 0.5], type: 'DOUBLE' },
      { name: 'input_token_length', data: [1200, 1200], type: 'DOUBLE' },
      { name: 'num_request_waiting', data: [3, 3], type: 'DOUBLE' },
      { name: 'num_request_running', data: [8n, 9n], type: 'INT64' },
      { name: 'num_tokens_generated', data: [7, 7], type: 'DOUBLE' },
      { name: 'actual_ttft_ms', data: [0, 0], type: 'DOUBLE' },
      { name: 'actual_tpot_ms', data: [21, 21], type: 'DOUBLE' },
      { name: 'prefix_cache_score', data: [0.25, 0.25], type: 'DOUBLE' },
      { name: 'prefill_tokens_in_flight', data: [800, 800], type: 'DOUBLE' },
      { name: 'decode_tokens_in_flight', data: [100, 100], type: 'DOUBLE' },
    ]),
  );
  assert.deepEqual(refusals, []);
  assert.deepEqual([...table.numRequestRunning.subarray(0, table.count)], [8, 9]);
});

test('Parquet may have whole observations in a column of JSON', async () => {
  const data = [5, 6].map((ttftMillis) => ({ input: { inputTokenLength: 9 }, ttftMillis }));
  const { table, refusals } = await readParquet(write([{ name: 'observation', data, type: 'JSON' }]));
  assert.deepEqual(refusals, []);
  assert.deepEqual([...table.ttftMs.subarray(0, table.count)], [5, 6]);
});

test('a column of Parquet that is not used is named, and not decoded', async () => {
  const columnData: Columns = [
    { name: 'input_token_length', data: [10, 20], type: 'INT32' },
    { name: 'note', data: ['undecodable', 'undecodable'], type: 'JSON' },
    { name: 'ttft_millis', data: [5, 6], type: 'DOUBLE' },
  ];
  const bytes = Buffer.from(parquetWriteBuffer({ columnData, codec: 'UNCOMPRESSED', statistics: false }));
  // Its cells are no JSON now, of the same length.
  for (let at = bytes.indexOf('"undecodable"'); at !== -1; at = bytes.indexOf('"undecodable"', at))
    bytes.write('!', at);
  const { table, ignoredFields, refusals } = await readParquet(bytes);
  assert.deepEqual(refusals, []);
  assert.deepEqual([...table.inputTokenLength.subarray(0, table.count)], [10, 20]);
  assert.deepEqual(ignoredFields, [{ name: 'note', rows: 2 }]);
});

test('a time of Parquet before 1970 is refused', async () => {
  const { table, refusals } = await readParquet(
    write([
      { name: 'input_token_length', data: [1, 2], type: 'INT32' },
      { name: 'ttft_millis', data: [5, 6], type: 'DOUBLE' },
      { name: 'at', data: [new Date(-1), new Date(86_400_000)], type: 'TIMESTAMP' },
    ]),
  );
  assert.deepEqual(Array.from(table.atMs.slice(0, table.count)), [86_400_000]);
  assert.equal(refusals[0]?.reason, 'at must be an ISO 8601 time or milliseconds since the epoch');
});
