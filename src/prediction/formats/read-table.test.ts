import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import type { Format } from './read-observations.ts';
import { readTable } from './read-table.ts';

const OURS = {
  target_model: 'm',
  pod_type: 'decode',
  server_ip: '10.0.0.7',
  at: '2026-01-02T03:04:05Z',
  input_token_length: 1200,
  prefix_cache_score: 0.25,
  num_request_waiting: 3,
  num_request_running: 8,
  kv_cache_usage: 0.5,
  inflight_tokens: 900,
  hbm_utilization: 0.7,
  ai_core_utilization: 0.6,
  bandwidth_utilization: 0.4,
  ttft_millis: 120.5,
  tpot_millis: 21,
};
const LLM_D = {
  kv_cache_percentage: 0.5,
  input_token_length: 1200,
  num_request_waiting: 3,
  num_request_running: 8,
  num_tokens_generated: 7,
  actual_ttft_ms: 0,
  actual_tpot_ms: 21,
  prefix_cache_score: 0.25,
  prefill_tokens_in_flight: 800,
  decode_tokens_in_flight: 100,
};

async function read(text: string | Uint8Array, format?: Format) {
  return await readTable(['-'], { format, targetModel: 'm', stdin: Readable.from([Buffer.from(text)]) });
}

test('our JSON lines are read with every field', async () => {
  const { table, refusals } = await read(`${JSON.stringify(OURS)}\n`);
  assert.deepEqual(refusals, []);
  assert.equal(table.count, 1);
  assert.equal(table.inflightTokens[0], 900);
  assert.equal(table.bandwidthUtilization[0], 0.4);
  assert.equal(table.atMs[0], Date.UTC(2026, 0, 2, 3, 4, 5));
  assert.equal(table.ttftMs[0], 120.5);
  assert.deepEqual([table.podTypes, table.servers, table.models], [['decode'], ['10.0.0.7'], ['m']]);
});

test('fields that are not used are named once, with the number of their rows', async () => {
  const rows = [OURS, { ...OURS, kv_cache: 0.5, note: '' }, { ...OURS, kv_cache: 0.4 }, { ...OURS, actual_ttft: 3 }];
  const { table, ignoredFields } = await read(rows.map((row) => JSON.stringify(row)).join('\n'));
  assert.equal(table.count, 4);
  assert.deepEqual(ignoredFields, [
    { name: 'kv_cache', rows: 2 },
    { name: 'note', rows: 1 },
    { name: 'actual_ttft', rows: 1 },
  ]);
  const llmD = await read(JSON.stringify({ ...LLM_D, kv_cache_usage: 0.1 }));
  assert.deepEqual(
    llmD.ignoredFields.map(({ name }) => name),
    ['num_tokens_generated', 'kv_cache_usage'],
  );
});

test('rows as JSON of our messages spells them are read like those of the proto file', async () => {
  const toCamel = (name: string) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  const camel = Object.fromEntries(Object.entries(OURS).map(([name, value]) => [toCamel(name), value]));
  const { target_model, at, ttft_millis, tpot_millis, ...input } = OURS;
  const observation = { target_model, at, ttft_millis, tpot_millis, output_tokens: 9, input };
  const { table, refusals, ignoredFields } = await read(
    [OURS, camel, { observation }].map((row) => JSON.stringify(row)).join('\n'),
  );
  assert.deepEqual([refusals, ignoredFields], [[], []]);
  for (const name of ['inflightTokens', 'kvCacheUsage', 'bandwidthUtilization', 'atMs', 'ttftMs', 'tpotMs'] as const)
    assert.deepEqual([...table[name].subarray(0, 3)], Array(3).fill(table[name][0]), name);
  assert.deepEqual([table.podTypes, table.servers], [['decode'], ['10.0.0.7']]);
});

test('the TPOT of one token is left out of a row, and its TTFT is read', async () => {
  const { table, refusals } = await read(`${JSON.stringify({ ...OURS, output_tokens: 1 })}\n`);
  assert.deepEqual(refusals, []);
  assert.deepEqual([table.ttftMs[0], table.tpotMs[0]], [120.5, Number.NaN]);
});

test('rows of llm-d are mapped, and 0 means a time that was not observed', async () => {
  const { table, refusals } = await read(`${JSON.stringify(LLM_D)}\n`);
  assert.deepEqual(refusals, []);
  assert.equal(table.kvCacheUsage[0], 0.5);
  assert.equal(table.inflightTokens[0], 900);
  assert.equal(table.tpotMs[0], 21);
  assert.ok(Number.isNaN(table.ttftMs[0]));
});

const refused: [title: string, row: string, reason: string][] = [
  ['a misspelt prompt length', '{"input_token_lenght": 9, "ttft_millis": 3}', 'input_token_length must be present'],
  [
    'a prompt length that is null',
    '{"input_token_length": null, "ttft_millis": 3}',
    'input_token_length must be present',
  ],
  [
    'a count beyond 32 bits',
    '{"input_token_length": 1e12, "ttft_millis": 3}',
    'input_token_length must be at most 2147483647',
  ],
  ['a line that is no JSON', '{"input_token', 'not a JSON object'],
  ['an array', '[1, 2]', 'not a JSON object'],
  [
    'a negative count',
    JSON.stringify({ ...OURS, num_request_waiting: -1 }),
    'num_request_waiting must be a finite number of 0 or more',
  ],
  ['a word for a number', JSON.stringify({ ...OURS, kv_cache_usage: 'high' }), 'kv_cache_usage must be a number'],
  ['a TTFT of 0', JSON.stringify({ ...OURS, ttft_millis: 0 }), 'ttft_millis must be more than 0 and at most a day'],
  ['a TTFT of a nanosecond', JSON.stringify({ ...OURS, ttft_millis: 1e-6 }), 'ttft_millis must be at least 0.001'],
  ['a TPOT of next to nothing', JSON.stringify({ ...OURS, tpot_millis: 5e-324 }), 'tpot_millis must be at least 0.001'],
  [
    'a TTFT of a year',
    JSON.stringify({ ...OURS, ttft_millis: 3e10 }),
    'ttft_millis must be more than 0 and at most a day',
  ],
  [
    'a row without times',
    JSON.stringify({ ...OURS, ttft_millis: undefined, tpot_millis: null }),
    'ttft_millis or tpot_millis must be present',
  ],
  [
    'the TPOT of one token alone',
    JSON.stringify({ ...OURS, ttft_millis: undefined, output_tokens: 1 }),
    'ttft_millis must be present when output_tokens is 1',
  ],
  ...['yesterday', 'run 7', '03/04/2026', '1969-12-31'].map((at): [string, string, string] => [
    `a time of "${at}"`,
    JSON.stringify({ ...OURS, at }),
    'at must be an ISO 8601 time or milliseconds since the epoch',
  ]),
  ...[0, 5321, 86_400_000, '5321', -1, 1e300].map((at): [string, string, string] => [
    `a time of ${JSON.stringify(at)}, which counts from another start`,
    JSON.stringify({ ...OURS, at }),
    'at must count from 1 January 1970, as milliseconds or seconds after 2001; other clocks are refused',
  ]),
  [
    'an llm-d row without times, in its words',
    JSON.stringify({ ...LLM_D, actual_tpot_ms: 0 }),
    'actual_ttft_ms or actual_tpot_ms must be present',
  ],
];
for (const [title, row, reason] of refused)
  test(`${title} is refused with its line, and the others are kept`, async () => {
    const { table, refusals } = await read(`${JSON.stringify(OURS)}\n${row}\n\n${JSON.stringify(LLM_D)}`);
    assert.equal(table.count, 2);
    assert.deepEqual(refusals, [{ reason, rows: 1, firstAt: 'standard input:2' }]);
  });

test('refusals are counted by reason, the most frequent first', async () => {
  const bad = JSON.stringify({ ...OURS, kv_cache_usage: -1 });
  const { refusals } = await read(`${JSON.stringify({ ...OURS, tpot_millis: -1 })}\n${bad}\n${bad}\n`);
  assert.deepEqual(
    refusals.map(({ rows, firstAt }) => [rows, firstAt]),
    [
      [2, 'standard input:2'],
      [1, 'standard input:1'],
    ],
  );
});

test('CSV is read with quoted fields and either header', async () => {
  const ours = `${Object.keys(OURS).join(',')}\n${Object.values(OURS).join(',').replace('10.0.0.7', '"10.0.0.7, rack ""b"""')}\r\n`;
  const { table } = await read(ours);
  assert.equal(table.servers[0], '10.0.0.7, rack "b"');
  assert.equal(table.ttftMs[0], 120.5);
  const llmD = await read(`${Object.keys(LLM_D).join(',')}\n${Object.values(LLM_D).join(',')}\n1,2\n`);
  assert.equal(llmD.table.inflightTokens[0], 900);
  assert.deepEqual(
    llmD.refusals.map((refusal) => [refusal.reason, refusal.firstAt]),
    [['a row must have as many fields as the header, 10', 'standard input:3']],
  );
});

test('a line split over chunks is read whole', async () => {
  const bytes = Buffer.from(`${JSON.stringify({ ...OURS, server_ip: 'größe' })}\n`);
  const chunks = Array.from(bytes, (byte) => Uint8Array.of(byte));
  const { table } = await readTable(['-'], { format: undefined, targetModel: 'm', stdin: Readable.from(chunks) });
  assert.equal(table.servers[0], 'größe');
});

test('a file that is not there is refused as a wrong call', async () => {
  await assert.rejects(
    readTable(['/nowhere/rows.jsonl'], { format: undefined, targetModel: 'm', stdin: process.stdin }),
    {
      code: 'invalid',
    },
  );
});

test('several files are read into one table', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-files-'));
  try {
    const paths = ['a', 'b'].map((name) => join(folder, name));
    for (const path of paths) writeFileSync(path, `${JSON.stringify({ ...OURS, server_ip: path })}\n`);
    const { table } = await readTable(paths, { format: undefined, targetModel: 'm', stdin: process.stdin });
    assert.deepEqual(table.servers, paths);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('seconds since the epoch become milliseconds, as a number and as a text', async () => {
  const rows = [1_767_225_600, '1767225600.25', 1_767_225_600_000, '2026-01-01T00:00:00Z', null];
  const { table, refusals } = await read(rows.map((at) => JSON.stringify({ ...OURS, at })).join('\n'));
  assert.deepEqual(refusals, []);
  const startMs = 1_767_225_600_000;
  assert.deepEqual([...table.atMs.subarray(0, 5)], [startMs, startMs + 250, startMs, startMs, Number.NaN]);
});

for (const text of [
  'input_token_length,ttft_millis\n1,5\n2\n3,7\n',
  '{"input_token_length":1,"ttft_millis":5}\n{}\n{}\n',
])
  test(`readTable() refuses more rows than it may read: ${JSON.stringify(text)}`, async () => {
    const options = { format: undefined, targetModel: 'm' };
    const read = (maxRows: number) =>
      readTable(['-'], { ...options, maxRows, stdin: Readable.from([Buffer.from(text)]) });
    await read(3);
    await assert.rejects(read(2), {
      code: 'invalid',
      message: 'Cannot read "standard input": it must have at most 2 rows',
    });
  });
