/** Files made to cost more than they are long: each is read in linear time, or refused by the name of its limit. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, test } from 'node:test';
import type { PageHeader } from 'hyparquet';
import { parquetWriteFile } from 'hyparquet-writer';
import { isFailure } from '../../errors.ts';
import { createRandom } from '../gbdt/random.ts';
import { parseLightgbmText } from './lightgbm-text.ts';
import { checkRuns } from './parquet-runs.ts';
import type { Format } from './read-observations.ts';
import { readTable } from './read-table.ts';
import { parseXgboostJson } from './xgboost-json.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-hostile-'));
after(() => rmSync(folder, { recursive: true }));

/** Far more than the megabytes below take, far less than a pass over them for each piece. */
const MAX_CPU_SECONDS = 3;

async function readWithin(chunks: Iterable<Buffer>, format: Format | undefined) {
  const before = process.cpuUsage();
  const options = { format, targetModel: 'm', kvCapacityTokens: 10_000, stdin: Readable.from(chunks) };
  const read = await readTable(['-'], options);
  const { user, system } = process.cpuUsage(before);
  assert.ok(user + system < MAX_CPU_SECONDS * 1e6, `${(user + system) / 1e6} s of a processor`);
  return read;
}

function* cut(text: string, bytes: number): Generator<Buffer> {
  const whole = Buffer.from(text);
  for (let at = 0; at < whole.length; at += bytes) yield whole.subarray(at, at + bytes);
}

const MIB = 1_048_576;

test('a line of 3 MiB that comes in pieces of 64 bytes is searched once', async () => {
  const text = `{"pod_type":"${'x'.repeat(3 * MIB)}","input_token_length":1,"ttft_millis":1}`;
  const { table, refusals } = await readWithin(cut(text, 64), 'jsonl');
  assert.equal(table.count + refusals.length, 1);
});

test('a line that is longer than 4 MiB is refused by its number, also when it comes in one piece', async () => {
  const text = `{}\n{"pod_type":"${'x'.repeat(5 * MIB)}"}\n`;
  for (const bytes of [64 * 1024, 6 * MIB])
    await assert.rejects(readWithin(cut(text, bytes), 'jsonl'), /Cannot read line 2: it is longer than 4 MiB/);
});

test('a quoted CSV field of 3 MiB is read, and one without an end is refused', async () => {
  const header = 'pod_type,input_token_length,ttft_millis';
  const rows = [`"${'""x'.repeat(MIB)}",10,20`, `"${'""'.repeat(MIB)},10,20`, '"a"b,10,20', '"a,b",10,20'];
  const { table, refusals } = await readWithin(cut([header, ...rows].join('\n'), 65_536), 'csv');
  assert.equal(table.count, 2);
  assert.equal(table.podTypes[table.podType[0]!], '"x'.repeat(MIB));
  assert.deepEqual(
    refusals.map(({ reason, rows: count }) => [reason, count]),
    [['a quoted field has no end', 2]],
  );
});

test('a CSV header of more than 1000 names is refused', async () => {
  await assert.rejects(readWithin(cut('a,'.repeat(MIB), 65_536), 'csv'), /must have at most 1000 names, got 1048577/);
});

const REQUEST = {
  run: 'a',
  server: 's',
  start_ms: 0,
  first_token_ms: 10,
  end_ms: 110,
  input_tokens: 9,
  output_tokens: 5,
};
const impossible: readonly [change: object, reason: string][] = [
  [{ input_tokens: 1e30 }, 'input_tokens must be at most 2147483647'],
  [{ output_tokens: 9e18 }, 'output_tokens must be at most 2147483647'],
  [{ output_tokens: 1e9 }, 'output_tokens must be fewer: each would have taken less than 0.001 ms'],
  [{ start_ms: -1e300 }, 'start_ms must be at most 8640000000000000'],
];
for (const [change, reason] of impossible)
  test(`a request with ${JSON.stringify(change)} is refused by name`, async () => {
    const { table, refusals } = await readWithin([Buffer.from(JSON.stringify({ ...REQUEST, ...change }))], 'requests');
    assert.equal(table.count, 0);
    assert.deepEqual(
      refusals.map((refusal) => refusal.reason),
      [reason],
    );
  });

test('tokens in flight are never negative, where fractions were lost beside large counts', async () => {
  // A large request ends beside a small one; a third finds its server idle.
  const requests = Array.from({ length: 100 }, (_, i) => {
    const on = { ...REQUEST, server: `s${i}` };
    return [
      { ...on, start_ms: 0, first_token_ms: 20, end_ms: 300, input_tokens: 2_000_000_000 + 0.37 * i },
      { ...on, start_ms: 10, first_token_ms: 50, end_ms: 400, input_tokens: 0.1 * (1 + (i % 7)) },
      { ...on, start_ms: 1000, first_token_ms: 1050, end_ms: 1400, input_tokens: 0 },
    ];
  });
  const text = requests.flat().map((row) => JSON.stringify(row));
  const { table } = await readWithin([Buffer.from(text.join('\n'))], 'requests');
  assert.equal(table.count, 300);
  assert.ok(table.inflightTokens.subarray(0, table.count).every((tokens) => tokens >= 0));
});

function writeXgboost(left: readonly number[], right: readonly number[]): string {
  const zeros = left.map(() => 0);
  const tree = {
    left_children: left,
    right_children: right,
    split_indices: zeros,
    split_conditions: zeros,
    default_left: zeros,
  };
  return JSON.stringify({
    learner: {
      gradient_booster: { name: 'gbtree', model: { trees: [tree] } },
      learner_model_param: { base_score: '5E-1', num_feature: '1' },
      objective: { name: 'reg:squarederror' },
    },
  });
}

/** Each level has one split, one leaf, and the next level. */
function writeChain(depth: number): string {
  const left = Array.from({ length: 2 * depth + 1 }, (_, node) => (node % 2 === 0 && node < 2 * depth ? node + 1 : -1));
  return writeXgboost(
    left,
    left.map((child) => (child === -1 ? -1 : child + 1)),
  );
}

test('trees of other libraries are refused when they turn back, share nodes or are too deep', () => {
  assert.throws(() => parseXgboostJson(writeXgboost([0, -1, -1], [1, -1, -1])), /node 0 is not well formed/);
  assert.throws(() => parseXgboostJson(writeXgboost([-5, -1, -1], [1, -1, -1])), /node 0 is not well formed/);
  // Forty levels of this have 2^40 ways down.
  const shared = Array.from({ length: 41 }, (_, node) => (node < 40 ? node + 1 : -1));
  assert.throws(() => parseXgboostJson(writeXgboost(shared, shared)), /node 1 must have one parent/);
  assert.doesNotThrow(() => parseXgboostJson(writeChain(512)));
  assert.throws(() => parseXgboostJson(writeChain(513)), /it must be at most 512 levels deep/);
});

test('a LightGBM model that says it has a thousand million features is refused', () => {
  const text = readFileSync(new URL('./fixtures/lightgbm-regression.txt', import.meta.url), 'utf8');
  const hostile = text.replace(/max_feature_idx=\d+/, 'max_feature_idx=999999999').replace(/feature_names=.*/, '');
  assert.throws(() => parseLightgbmText(hostile), /must have at most 10000 features, got 1000000000/);
});

function readParquet(filename: string) {
  return readTable([filename], { format: 'parquet', targetModel: 'm', stdin: Readable.from([]) });
}

test('a Parquet file is refused when it says more rows than it has, and with too many columns', async () => {
  const filename = join(folder, 'rows.parquet');
  const data = Array.from({ length: 100 }, (_, i) => i + 1);
  parquetWriteFile({ filename, columnData: [{ name: 'input_token_length', data, type: 'INT32' }] });
  const bytes = readFileSync(filename);
  // Thrift's compact protocol: field 3 of the file's metadata, an i64 of 100, becomes 8191.
  const at = bytes.indexOf(Buffer.of(0x16, 0xc8, 0x01), bytes.length - 8 - bytes.readUInt32LE(bytes.length - 8));
  bytes.set([0x16, 0xfe, 0x7f], at);
  writeFileSync(filename, bytes);
  await assert.rejects(readParquet(filename), /its row groups have 100 rows, and it says 8191/);
  const columnData = Array.from({ length: 1001 }, (_, i) => ({ name: `c${i}`, data: [1], type: 'INT32' as const }));
  parquetWriteFile({ filename, columnData });
  await assert.rejects(readParquet(filename), /it must have at most 1000 columns, got 1001/);
});

test('a Parquet page that claims 100 million bytes is refused before there is room for it', async () => {
  const filename = join(folder, 'page.parquet');
  const data = Array.from({ length: 1000 }, (_, i) => `${i}`.padEnd(3000, 'x'));
  parquetWriteFile({ filename, columnData: [{ name: 'pod_type', data, type: 'STRING' }], pageSize: 8 * MIB });
  const bytes = readFileSync(filename);
  // The header of the first page: its kind, then its size, each a zigzag number behind 0x15.
  const at = bytes.indexOf(0x15, 5) + 1;
  const isFourBytes = [0, 1, 2].every((i) => bytes[at + i]! >= 0x80) && bytes[at + 3]! < 0x80;
  assert.ok(isFourBytes, 'the size takes four bytes');
  for (const [i, shift] of [0, 7, 14, 21].entries())
    bytes[at + i] = ((200_000_000 >> shift) & 0x7f) | (i < 3 ? 0x80 : 0);
  writeFileSync(filename, bytes);
  await assert.rejects(readParquet(filename), /a page must have at most 67108864 bytes, got 100000000/);
});

/** Each kind of column and page that the writer knows. */
function writeSample(name: string, codec: 'UNCOMPRESSED' | 'SNAPPY'): Buffer {
  const filename = join(folder, name);
  const rows = Array.from({ length: 300 }, (_, i) => i);
  parquetWriteFile({
    filename,
    codec,
    columnData: [
      { name: 'input_token_length', data: rows, type: 'INT32' },
      {
        name: 'ttft_millis',
        data: rows.map((row) => (row % 3 === 0 ? null : row + 0.5)),
        type: 'DOUBLE',
        nullable: true,
      },
      { name: 'pod_type', data: rows.map((row) => `p${row % 4}`), type: 'STRING' },
      { name: 'flag', data: rows.map((row) => row % 2 === 0), type: 'BOOLEAN' },
    ],
  });
  return readFileSync(filename);
}

for (const codec of ['UNCOMPRESSED', 'SNAPPY'] as const)
  test(`a Parquet file (${codec}) with any bytes changed is read or refused, in bounded time and memory`, async () => {
    const original = writeSample('fuzzed.parquet', codec);
    const filename = join(folder, 'fuzzed.parquet');
    const random = createRandom(3);
    let read = 0;
    const before = process.cpuUsage();
    for (let trial = 0; trial < 500; trial++) {
      const bytes = Buffer.from(original);
      for (let i = 0; i <= trial % 3; i++)
        bytes[Math.floor(random() * bytes.length)] = trial % 2 ? 0xff : 256 * random();
      writeFileSync(filename, bytes);
      try {
        await readParquet(filename);
        read++;
      } catch (error) {
        assert.ok(isFailure(error), String(error));
      }
    }
    const { user, system } = process.cpuUsage(before);
    assert.ok(user + system < 60e6, `${(user + system) / 1e6} s of a processor`);
    assert.ok(read > 0 && read < 500, `${read} were read`);
  });

/** The footer in the place of that of a file with one column. */
async function readFooter(footer: Uint8Array): Promise<unknown> {
  const filename = join(folder, 'footer.parquet');
  const length = Buffer.alloc(4);
  length.writeUInt32LE(footer.length);
  writeFileSync(filename, Buffer.concat([Buffer.from('PAR1'), footer, length, Buffer.from('PAR1')]));
  return readParquet(filename);
}

test('a Parquet footer is refused for long numbers, long lists and deep structures, in linear time', async () => {
  const before = process.cpuUsage();
  await assert.rejects(readFooter(Buffer.concat([Buffer.of(0x16), Buffer.alloc(4 * MIB, 0x80)])), /at most 10 bytes/);
  await assert.rejects(readFooter(Buffer.alloc(4 * MIB, 0x1c)), /must be at most 16 levels deep/);
  const list = Buffer.of(0x19, 0xf6, 0xff, 0xff, 0xff, 0xff, 0x07, 0);
  await assert.rejects(readFooter(list), /a list of its metadata must have at most 1 elements, got 2147483647/);
  await assert.rejects(readFooter(Buffer.of(0x18, 0xff, 0x7f, 0)), /a text of its metadata must have at most 1 bytes/);
  const { user, system } = process.cpuUsage(before);
  assert.ok(user + system < MAX_CPU_SECONDS * 1e6, `${(user + system) / 1e6} s of a processor`);
});

test('a Parquet file with nested columns is refused by their name', async () => {
  const bytes = writeSample('nested.parquet', 'UNCOMPRESSED');
  // In the schema of the footer: field 3, an i32 of 0 or 1 (required, optional), before field 4, the name.
  const name = bytes.indexOf(Buffer.concat([Buffer.of(0x18, 18), Buffer.from('input_token_length')]));
  const repetition = bytes.lastIndexOf(0x25, name);
  assert.ok(name - repetition === 2 && bytes[repetition + 1]! <= 2, 'the repetition is found');
  bytes[repetition + 1] = 4;
  writeFileSync(join(folder, 'nested.parquet'), bytes);
  await assert.rejects(readParquet(join(folder, 'nested.parquet')), /must not be nested, got "input_token_length"/);
});

test('a run of a Parquet page that claims more values than the page has is refused before they are written', () => {
  // 1 byte of levels, then an index of 1 bit and a run of 2^30 - 1.
  const run = Buffer.of(1, 0xfe, 0xff, 0xff, 0xff, 0x07, 0);
  const page = { num_values: 100, encoding: 'RLE_DICTIONARY' };
  const header = { type: 'DATA_PAGE', uncompressed_page_size: run.length, data_page_header: page };
  const rules = { type: 'INT32', isNullable: false, decompress: (bytes: Uint8Array) => bytes };
  const refusal = /a run must have at most 100 values, got 1073741823/;
  assert.throws(() => checkRuns(run, header as PageHeader, rules), refusal);
  const levels = Buffer.concat([Buffer.of(6, 0, 0, 0), run.subarray(1)]);
  const nullable = { ...rules, isNullable: true };
  assert.throws(
    () => checkRuns(levels, { ...header, data_page_header: { ...page, encoding: 'PLAIN' } } as PageHeader, nullable),
    refusal,
  );
});
