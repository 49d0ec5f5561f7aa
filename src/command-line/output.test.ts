import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readEnvironment } from '../config/config.ts';
import { formatTable } from './output.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-output-'));
after(() => rmSync(folder, { recursive: true }));
const rows = join(folder, 'rows.jsonl');
writeFileSync(rows, '{"input_token_length": 9, "ttft_millis": 3}\n'.repeat(600));

const program = fileURLToPath(new URL('../cli/trivet.ts', import.meta.url));
const argv = [process.execPath, ...process.execArgv, program, 'observe', '--model', 'm', '--input', rows];
const env = { ...readEnvironment(), TRIVET_DATA_DIR: join(folder, 'data') };

const CLEAR_LINE = '\r\x1b[2K';

/** `script` of util-linux lends a command a terminal. */
const isTerminalLent = spawnSync('script', ['-qec', 'true', '/dev/null']).status === 0;

test('on a terminal the answer takes the place of the progress', {
  skip: !isTerminalLent && 'script of util-linux is not installed',
}, () => {
  const command = argv.map((word) => `'${word}'`).join(' ');
  const { stdout } = spawnSync('script', ['-qec', command, '/dev/null'], { env, encoding: 'utf8' });
  assert.ok(stdout.includes(`${CLEAR_LINE}Taken: 500 rows`), stdout);
  assert.ok(stdout.endsWith(`${CLEAR_LINE}Took 600 observations\r\n`), stdout);
});

test('without a terminal, no progress line replaces another', () => {
  const { stdout, stderr } = spawnSync(argv[0]!, argv.slice(1), { env, encoding: 'utf8' });
  assert.equal(stdout, 'Took 600 observations\n');
  assert.ok(!stderr.includes('\r'), stderr);
});

test('a cell takes one line of a table, and as much place as it shows', () => {
  const table = formatTable(['name', 'state'], [['a\nb\u001b[2J', 'on']]);
  assert.equal(table, 'name          state\na b\\u001b[2J  on');
});
