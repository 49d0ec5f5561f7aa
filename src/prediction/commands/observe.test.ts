import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, type TestContext, test } from 'node:test';
import { waitUntil } from '../../../test/support/basics/wait-until.ts';
import { runTrivet } from '../../../test/support/programs/run-trivet.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-observe-'));
after(() => rmSync(folder, { recursive: true }));

test('trivet observe leaves out rows with a text that no store keeps, and takes the others', async () => {
  const row = { target_model: 'm', input_token_length: 9, ttft_millis: 3 };
  const rows = [row, { ...row, server_ip: 'a\0' }, { ...row, pod_type: '\ud800' }, { ...row, target_model: '\0' }, row];
  const path = join(folder, 'rows.jsonl');
  writeFileSync(path, rows.map((each) => `${JSON.stringify(each)}\n`).join(''));
  const env = { TRIVET_DATA_DIR: join(folder, 'data') };
  const ended = await runTrivet(['observe', '--input', path, '--json'], { env });
  assert.equal(ended.code, 0, ended.stderr);
  const { accepted, refusals } = JSON.parse(ended.stdout) as { accepted: number; refusals: { reason: string }[] };
  assert.equal(accepted, 2);
  assert.deepEqual(refusals.map(({ reason }) => reason).toSorted(), [
    'pod_type must be valid Unicode, got half of a surrogate pair',
    'server_ip must not contain the character NUL',
    'target_model must not contain the character NUL',
  ]);
});

async function observe(rows: readonly object[]) {
  const input = rows.map((row) => `${JSON.stringify(row)}\n`).join('');
  const env = { TRIVET_DATA_DIR: join(folder, 'bounds') };
  return await runTrivet(['observe', '--input', '-', '--json'], { env, input });
}

const toLine = (row: object): string => `${JSON.stringify(row)}\n`;
const ROW = { target_model: 'm', input_token_length: 9, ttft_millis: 3 };

test('trivet observe refuses by its name what a report may not say', async () => {
  const bad = [
    { output_tokens: 9e18 },
    { output_tokens: -5 },
    { input_token_length: 1e30 },
    { server_ip: 'é'.repeat(129) },
    { pod_type: 'x'.repeat(257) },
    { target_model: 'x'.repeat(257) },
    { at: Date.UTC(2200, 0) },
  ];
  const good = [
    { output_tokens: 0 },
    { output_tokens: 2_147_483_647 },
    { server_ip: 'x'.repeat(256) },
    { at: Date.now() },
  ];
  const { code, stdout, stderr } = await observe([...bad, ...good].map((fields) => ({ ...ROW, ...fields })));
  assert.equal(code, 0, stderr);
  const { accepted, refusals } = JSON.parse(stdout) as {
    accepted: number;
    refusals: { rows: number; reason: string }[];
  };
  assert.equal(accepted, good.length);
  assert.deepEqual(refusals.map(({ rows, reason }) => `${rows} ${reason}`).toSorted(), [
    '1 at must not be more than a day ahead',
    '1 input_token_length must be at most 2147483647',
    '1 pod_type must have at most 256 bytes',
    '1 server_ip must have at most 256 bytes',
    '1 target_model must have at most 256 bytes',
    '2 output_tokens must be 0 to 2147483647',
  ]);
});

test('trivet observe fails for a file without one usable row, and says why', async () => {
  const { code, stderr } = await observe([{ ttft_millis: 3, target_model: 'm' }]);
  assert.equal(code, 2);
  assert.match(stderr, /^Cannot observe: no row is usable\n[\s\S]*1 +input_token_length must be present/);
});

test('trivet observe asks about times in seconds before it stores them', async () => {
  const { code, stdout, stderr } = await observe(Array.from({ length: 600 }, () => ({ ...ROW, ttft_millis: 0.2 })));
  assert.equal(code, 0);
  assert.equal((JSON.parse(stdout) as { accepted: number }).accepted, 600);
  assert.equal(
    stderr,
    'Are the times in seconds? They must be in milliseconds: a first token typically takes 0.2 ms\n',
  );
});

test('trivet observe dates a row that a clock ahead has dated with the time of the command', async () => {
  const dataDir = join(folder, 'ahead');
  const input = toLine({ ...ROW, at: Date.now() + 600_000 });
  const { code, stderr } = await runTrivet(['observe', '--input', '-'], { env: { TRIVET_DATA_DIR: dataDir }, input });
  assert.equal(code, 0, stderr);
  using store = new DatabaseSync(join(dataDir, 'trivet.db'), { readOnly: true });
  const stored = store.prepare('SELECT at_ms FROM samples').all();
  assert.ok(stored.length === 1 && Number(stored[0]!.at_ms) <= Date.now(), JSON.stringify(stored));
});

/** Starts the command with one row, and returns it with a connection to its database. */
async function observeProgram(t: TestContext, name: string, path = '-') {
  const dataDir = join(folder, name);
  const made = await runTrivet(['observe', '--input', '-'], { env: { TRIVET_DATA_DIR: dataDir }, input: toLine(ROW) });
  assert.equal(made.code, 0, made.stderr);
  const child = spawn(process.execPath, ['src/cli/trivet.ts', 'observe', '--input', path], {
    env: { ...process.env, TRIVET_DATA_DIR: dataDir },
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  t.after(() => child.kill());
  const closed = once(child, 'close');
  const said = { text: '' };
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    said.text += chunk;
  });
  const database = new DatabaseSync(join(dataDir, 'trivet.db'), { timeout: 10_000 });
  t.after(() => database.close());
  const countStored = () => Number(database.prepare('SELECT COUNT(*) AS rows FROM samples').get()?.rows);
  return { child, closed, said, database, countStored };
}

test('trivet observe stores the rows of a program before their end, whether more come or not', async (t) => {
  const { child, closed, countStored } = await observeProgram(t, 'stream');
  // The program may say nothing more for hours.
  child.stdin.write(toLine(ROW));
  await waitUntil(() => countStored() === 2);
  child.stdin.write(toLine(ROW).repeat(1100));
  await waitUntil(() => countStored() === 1102);
  child.stdin.end();
  assert.deepEqual(await closed, [0, null]);
  assert.equal(countStored(), 1102);
});

test('trivet observe keeps the rows of a program while the database is locked, and stores them after that', async (t) => {
  const { child, closed, said, database, countStored } = await observeProgram(t, 'locked');
  child.stdin.write(toLine(ROW));
  await waitUntil(() => countStored() === 2);
  database.exec('BEGIN IMMEDIATE');
  child.stdin.write(toLine(ROW));
  // SQLite waits for a lock for ten seconds.
  await waitUntil(() => /^Rows are kept, and stored as soon as that is possible: /m.test(said.text));
  database.exec('ROLLBACK');
  await waitUntil(() => countStored() === 3);
  child.stdin.end();
  assert.deepEqual(await closed, [0, null]);
  assert.equal(countStored(), 3);
});

test('trivet observe ends at once when the rows of a program cannot be stored', async (t) => {
  const { child, closed, said, database, countStored } = await observeProgram(t, 'broken');
  child.stdin.write(toLine(ROW));
  await waitUntil(() => countStored() === 2);
  database.exec('DROP TABLE samples');
  child.stdin.write(toLine(ROW));
  assert.deepEqual(await closed, [1, null]);
  assert.match(said.text, /^Cannot run "sample-insert-many-1" on the database$/m);
});

test('trivet observe stores the rows of a named pipe before its end, and ends at once when it cannot', async (t) => {
  const path = join(folder, 'pipe');
  execFileSync('mkfifo', [path]);
  const { closed, said, database, countStored } = await observeProgram(t, 'named', path);
  // Opening it waits for the command.
  await using pipe = await open(path, 'w');
  await pipe.write(toLine(ROW).repeat(3));
  await waitUntil(() => countStored() === 1 + 3);
  database.exec('DROP TABLE samples');
  await pipe.write(toLine(ROW));
  assert.deepEqual(await closed, [1, null]);
  assert.match(said.text, /^Cannot run "sample-insert-many-1" on the database$/m);
});

test('trivet observe asks about recordings that overlap', async () => {
  const files = await Promise.all(
    ['6', '14'].map(async (rate) => {
      const output = join(folder, `rate-${rate}.jsonl`);
      const pool = ['--servers', 'large:1', '--rate', rate, '--duration', '120', '--workload', 'poisson'];
      assert.equal((await runTrivet(['simulate', ...pool, '--output', output])).code, 0);
      return output;
    }),
  );
  const env = { TRIVET_DATA_DIR: join(folder, 'overlap') };
  const { code, stderr } = await runTrivet(['observe', '--model', 'm', '--input', ...files], { env });
  assert.equal(code, 0, stderr);
  assert.match(
    stderr,
    /^Do the times of recordings overlap\? Requests that reached the server "large-0" at the same time/m,
  );
});
