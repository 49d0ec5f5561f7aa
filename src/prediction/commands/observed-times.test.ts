/** The times of recordings that are observed: what is learned of a queue depends on the times between its requests. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, type TestContext, test } from 'node:test';
import { runTrivet } from '../../../test/support/programs/run-trivet.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-observed-times-'));
after(() => rmSync(folder, { recursive: true }));
const MINUTE_MS = 60_000;

async function run(dataDir: string, argv: readonly string[], input = '') {
  const ended = await runTrivet(argv, { env: { TRIVET_DATA_DIR: join(folder, dataDir) }, input });
  assert.equal(ended.code, 0, ended.stderr);
  return ended;
}

interface StoredRow {
  readonly atMs: number;
  readonly server: string;
}

function listStored(dataDir: string): StoredRow[] {
  using store = new DatabaseSync(join(folder, dataDir, 'trivet.db'), { readOnly: true });
  const rows = store.prepare('SELECT at_ms, server_ip FROM samples ORDER BY at_ms, id').all();
  return rows.map(({ at_ms, server_ip }) => ({ atMs: Number(at_ms), server: String(server_ip) }));
}

function listGaps(rows: readonly StoredRow[]): number[] {
  return rows.slice(1).map(({ atMs }, i) => atMs - rows[i]!.atMs);
}

/** Simulates a server, and returns the file of what was observed there. */
async function record(name: string, startMs: number): Promise<string> {
  const output = join(folder, name);
  const pool = ['--servers', 'medium:1', '--workload', 'poisson', '--rate', '4', '--duration', '60'];
  await run('none', ['simulate', ...pool, '--start', new Date(startMs).toISOString(), '--output', output]);
  return output;
}

test('a recording that is dated ahead teaches the capacity that the same recording of an hour ago teaches', async () => {
  const past = await record('past.jsonl', Date.now() - 60 * MINUTE_MS);
  const ahead = await record('ahead.jsonl', Date.now() + 5 * MINUTE_MS);
  const answers = [];
  for (const [dataDir, path] of Object.entries({ past, ahead })) {
    await run(dataDir, ['model', 'train', '--model', 'm', '--input', past, '--promote', 'true']);
    const { stderr } = await run(dataDir, ['observe', '--model', 'm', '--input', path]);
    assert.equal(/^Times are up to \d+ s ahead of the clock here: all move back/m.test(stderr), dataDir === 'ahead');
    const limits = ['--output-tokens', '150', '--ttft', '2s', '--tpot', '50'];
    answers.push(JSON.parse((await run(dataDir, ['model', 'capacity', 'm', ...limits, '--json'])).stdout));
  }
  const rows = listStored('ahead');
  assert.ok(rows.length > 150 && rows.at(-1)!.atMs <= Date.now());
  assert.deepEqual(listGaps(rows), listGaps(listStored('past')));
  assert.deepEqual(answers[1], answers[0]);
});

test('recordings that are dated ahead stay as far from each other as they were', async () => {
  const nowMs = Date.now();
  const files = await Promise.all([4, 9].map((ms) => record(`${ms}.jsonl`, nowMs + ms * MINUTE_MS)));
  await run('two', ['observe', '--model', 'm', '--input', ...files]);
  const gaps = listGaps(listStored('two')).filter((ms) => ms > 3 * MINUTE_MS);
  assert.ok(gaps.length === 1 && gaps[0]! < 5 * MINUTE_MS, String(gaps));
});

test('rows of a stream that are dated ahead count from when they came, and are named', async () => {
  const path = await record('stream.jsonl', Date.now() + 5 * MINUTE_MS);
  const text = readFileSync(path, 'utf8');
  const { stderr } = await run('stream', ['observe', '--model', 'm', '--input', '-'], text);
  assert.match(
    stderr,
    /^Rows of a stream that are dated ahead of the clock here: \d{3}\. Each is dated at its arrival$/m,
  );
  assert.ok(listStored('stream').at(-1)!.atMs <= Date.now());
});

/** A request every half second, on a clock that begins with the run. */
function logRun(name: string, firstMs: number): string {
  const rows = Array.from({ length: 40 }, (_, i) => ({
    run: name,
    server: 's',
    server_ip: '10.0.0.5',
    start_ms: firstMs + 500 * i,
    first_token_ms: firstMs + 500 * i + 100,
    end_ms: firstMs + 500 * i + 900,
    input_tokens: 100,
    output_tokens: 9,
  }));
  return rows.map((row) => `${JSON.stringify(row)}\n`).join('');
}

const LOG = ['observe', '--format', 'requests', '--kv-capacity-tokens', '100000', '--model', 'm', '--input'];

for (const [title, firstMs] of [
  ['from 0 on', 0],
  ['before 0', -5000],
] as const)
  test(`runs with clocks of their own that count ${title} are dated one after the other, and the last ends now`, async () => {
    const text = logRun('a', firstMs) + logRun('b', firstMs);
    const path = join(folder, 'runs.jsonl');
    writeFileSync(path, text);
    for (const [input, dataDir] of Object.entries({ [path]: `file${firstMs}`, '-': `stdin${firstMs}` })) {
      const beforeMs = Date.now();
      const { stderr } = await run(dataDir, [...LOG, input], text);
      const rows = listStored(dataDir);
      const gaps = listGaps(rows);
      assert.deepEqual([gaps.length, gaps.filter((ms) => ms === 500).length], [79, 78]);
      assert.ok(gaps[39]! > MINUTE_MS, `${gaps[39]}`);
      assert.ok(rows.at(-1)!.atMs <= Date.now() - 900 && rows.at(-1)!.atMs >= beforeMs - 900);
      assert.match(stderr, /^Recordings with a clock of their own: 2\. They are dated one after the other/m);
    }
  });

/** A named pipe that gives this text to who reads it. */
function openPipe(t: TestContext, name: string, text: string): string {
  const [path, pipe] = [join(folder, `${name}.jsonl`), join(folder, `${name}.pipe`)];
  writeFileSync(path, text);
  execFileSync('mkfifo', [pipe]);
  const writer = spawn('sh', ['-c', 'exec cat "$0" > "$1"', path, pipe]);
  t.after(() => writer.kill());
  return pipe;
}

for (const others of ['a pipe', 'a file'])
  test(`runs with clocks of their own of ${others} and a pipe do not overlap`, async (t) => {
    const name = others.replace(' ', '-');
    const pipe = openPipe(t, name, logRun('a', 0));
    const other = others === 'a file' ? join(folder, `${name}.jsonl`) : openPipe(t, `${name}-2`, logRun('b', 0));
    const { stderr } = await run(name, [...LOG, other, pipe]);
    const gaps = listGaps(listStored(name));
    assert.deepEqual([gaps.length, gaps.filter((ms) => ms === 500).length], [79, 78]);
    assert.ok(gaps[39]! > MINUTE_MS, `${gaps[39]}`);
    assert.match(stderr, /Observe all of them in one command, and not beside live requests/);
  });
