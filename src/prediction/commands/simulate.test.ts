import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { runTrivet } from '../../../test/support/programs/run-trivet.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-simulate-'));
after(() => rmSync(folder, { recursive: true }));

interface Row {
  readonly at: number;
  readonly server_ip: string;
  readonly tpot_millis?: number;
  readonly prefix_cache_score: number;
}

/** When a recording begins that says nothing else. */
const START_MS = Date.parse('2026-01-01T00:00:00Z');

async function simulate(...options: string[]) {
  const output = join(folder, 'trace.jsonl');
  const pool = ['--servers', 'large:2', '--rate', '3', '--duration', '60', '--policy', 'round-robin'];
  const { code, stderr } = await runTrivet(['simulate', ...pool, ...options, '--output', output]);
  assert.equal(code, 0, stderr);
  const lines = readFileSync(output, 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as Row);
}

function meanTpot(rows: readonly Row[], server: string, isCounted: (at: number) => boolean): number {
  const times = rows.flatMap(({ at, server_ip, tpot_millis }) =>
    server_ip === server && isCounted(at) ? (tpot_millis ?? []) : [],
  );
  return times.reduce((sum, time) => sum + time, 0) / times.length;
}

test('--slow makes the named server slower from its time on, and no other', async () => {
  const steady = await simulate();
  const slowed = await simulate('--slow', 'large-1:3@30');
  assert.deepEqual(await simulate('--slow', 'large-1:3@0.5m'), slowed);
  // What started before was partly slowed down: a request of ten seconds would be a rare one.
  const early = (at: number) => at < START_MS + 20_000;
  const late = (at: number) => at > START_MS + 30_000;
  const ratio = (server: string, isCounted: (at: number) => boolean) =>
    meanTpot(slowed, server, isCounted) / meanTpot(steady, server, isCounted);
  assert.equal(ratio('large-1', early), 1);
  assert.ok(ratio('large-1', late) >= 3);
  assert.equal(ratio('large-0', early), 1);
  assert.equal(ratio('large-0', late), 1);
});

test('a slowdown of a server that is not there, or that says no time, is refused', async () => {
  const refused = await runTrivet(['simulate', '--servers', 'large:2', '--slow', 'small-0:2@30']);
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /Cannot slow a server down: it must be one of large-0, large-1, got "small-0"/);
  const unclear = await runTrivet(['simulate', '--slow', 'large-0:2']);
  assert.notEqual(unclear.code, 0);
  assert.match(unclear.stderr, /"large-0:2" must be a server, a factor above 0 and a time/);
});

function writeTables(name: string, ...dense: readonly string[]): string {
  const path = join(folder, name);
  mkdirSync(path);
  writeFileSync(join(path, 'dense.csv'), ['layer,tokens,time_us', ...dense, ''].join('\n'));
  const attention = [
    'prefill_chunk,kv_prefill,n_decode,kv_decode,time_us',
    '512,0,0,0,90',
    '0,0,1,100,4',
    '0,0,1,900,6',
  ];
  writeFileSync(join(path, 'attention.csv'), `${attention.join('\n')}\n`);
  writeFileSync(join(path, 'per_sequence.csv'), 'layer,sequences,time_us\nlm_head,1,100\nlm_head,8,120\n');
  return path;
}

test('measured step times that are repeated count with their mean, and a cell that is no time is refused', async () => {
  const once = writeTables('once', 'mlp,1,10', 'mlp,2048,900');
  const twice = writeTables('twice', 'mlp,1,8', 'mlp,1,12', 'mlp,2048,900');
  const toTimes = (rows: readonly Row[]) => rows.map(({ at, tpot_millis }) => [at, tpot_millis]);
  const rows = await simulate('--servers', twice);
  assert.ok(rows.some(({ tpot_millis = 0 }) => tpot_millis > 0));
  assert.deepEqual(toTimes(rows), toTimes(await simulate('--servers', once)));
  const wrong = writeTables('wrong', 'mlp,1,fast');
  const refused = await runTrivet(['simulate', '--servers', wrong]);
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /time_us must be a number of 0 or more, got "fast" at .*wrong\/dense\.csv:2\n$/);
});

const TRACE_LINE = '{"timestamp": 0, "input_length": 10, "output_length": 2}';
const refused: [title: string, trace: string, message: RegExp][] = [
  ['without times', '{"input_length": 10, "output_length": 2}', /timestamp must be a number of 0 or more at .*:1\n$/],
  ['that is no JSON', `${TRACE_LINE}\nTIMESTAMP,ContextTokens\n`, /timestamp must be .* at .*:2\n$/],
  ['without lengths', `${TRACE_LINE}\n{"timestamp": 5, "input_length": 9}`, /output_length must be .* at .*:2\n$/],
  [
    'of words for blocks',
    '{"timestamp": 0, "input_length": 9, "output_length": 2, "hash_ids": ["a"]}',
    /hash_ids must be/,
  ],
  [
    'of smaller blocks',
    `${TRACE_LINE}\n${JSON.stringify({ timestamp: 3, input_length: 160, output_length: 2, hash_ids: [...Array(10).keys()] })}`,
    /hash_ids must be 1 for 160 tokens in blocks of 512, got 10 at .*:2; give --block-tokens\n$/,
  ],
  ['that is empty', '\n', /is empty\n$/],
];
for (const [title, trace, message] of refused)
  test(`a trace ${title} is refused instead of waited for`, async () => {
    const path = join(folder, 'refused.jsonl');
    writeFileSync(path, trace);
    const { code, stderr } = await runTrivet(['simulate', '--trace', path]);
    assert.equal(code, 2);
    assert.match(stderr, message);
  });

test('a trace is replayed in the order of its times', async () => {
  const path = join(folder, 'unordered.jsonl');
  const line = (timestamp: number) => JSON.stringify({ timestamp, input_length: 600, output_length: 4, hash_ids: [1] });
  writeFileSync(path, [line(900), line(0), line(400)].join('\n'));
  const rows = await simulate('--trace', path);
  assert.deepEqual(
    rows.map(({ at }) => at - START_MS),
    [0, 400, 900],
  );
});

test('a trace in seconds, with blocks of 16 tokens, is replayed by its own units', async () => {
  const path = join(folder, 'seconds.jsonl');
  const hash_ids = [...Array(10).keys()];
  const line = (timestamp: number) => JSON.stringify({ timestamp, input_length: 160, output_length: 4, hash_ids });
  writeFileSync(path, [line(0), line(30.5)].join('\n'));
  const units = ['--trace', path, '--trace-unit', 's', '--block-tokens', '16', '--servers', 'large:1'];
  const [first, second] = await simulate(...units);
  assert.equal(second!.at - first!.at, 30_500);
  assert.deepEqual(
    [first, second].map((row) => row!.prefix_cache_score),
    [0, 1],
  );
});

test('no more than the full blocks of a prompt are cached', async () => {
  const path = join(folder, 'tails.jsonl');
  const line = (timestamp: number, input_length: number) =>
    JSON.stringify({ timestamp, input_length, output_length: 2, hash_ids: [1, timestamp] });
  writeFileSync(path, [line(10, 1000), line(5000, 1000), line(9000, 600), line(13_000, 900)].join('\n'));
  const trace = ['--trace', path, '--servers', 'large:1', '--kv-capacity-tokens', '100000'];
  const logged = await simulate(...trace, '--format', 'requests');
  assert.deepEqual(
    (logged as unknown as { readonly cached_tokens: number }[]).map(({ cached_tokens }) => cached_tokens),
    [0, 512, 512, 512],
  );
  const [, ...scores] = (await simulate(...trace)).map((row) => row.prefix_cache_score);
  assert.deepEqual(scores, [512 / 1000, 512 / 600, 512 / 900]);
});

test('a recording begins when --start says, in both formats, and a start that is no time is refused', async () => {
  const startMs = Date.parse('2026-03-04T05:06:00Z');
  const rows = await simulate('--start', '2026-03-04T05:06Z');
  const requests = await simulate('--start', '2026-03-04T05:06Z', '--format', 'requests');
  const first = Math.min(...rows.map(({ at }) => at));
  assert.ok(first >= startMs && first < startMs + 5000, `${first}`);
  const starts = (requests as unknown as { readonly start_ms: number }[]).map(({ start_ms }) => start_ms);
  assert.deepEqual(new Set(starts.map(Math.round)), new Set(rows.map(({ at }) => at)));
  const { code, stderr } = await runTrivet(['simulate', '--start', '12']);
  assert.equal(code, 2);
  assert.match(stderr, /it must be an ISO 8601 time with Z or an offset .* or a date in UTC/);
  assert.match((await runTrivet(['simulate', '--start', '1999-01-01'])).stderr, /it must be a time after 2001/);
});

test('a file that cannot be written is named before the work', async () => {
  const { code, stderr } = await runTrivet(['simulate', '--output', '/no/such/folder/trace.jsonl']);
  assert.equal(code, 2);
  assert.match(stderr, /^Cannot write "\/no\/such\/folder\/trace.jsonl"/);
});

for (const option of ['--rate', '--time-scale', '--seed', '--kv-capacity-tokens'])
  test(`${option} Infinity is refused, since such a simulation would not end`, async () => {
    const { code, stderr } = await runTrivet(['simulate', option, 'Infinity']);
    assert.equal(code, 2);
    assert.match(stderr, /it must be a finite number above 0/);
  });

test('a slowdown by more than a number can say is refused', async () => {
  const { code, stderr } = await runTrivet(['simulate', '--slow', `large-0:${'9'.repeat(400)}@5m`]);
  assert.equal(code, 2);
  assert.match(stderr, /must be a server, a factor above 0 and a time/);
});
