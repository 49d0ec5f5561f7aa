import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { createLog, gatherLines } from './log.ts';

test('createLog() writes one JSON line with an ISO time and the level as a word', () => {
  const lines: string[] = [];
  createLog('info', { write: (line: string) => void lines.push(line) }).warn({ size: 3 }, 'full');
  const line = JSON.parse(lines[0] ?? '{}') as Record<string, unknown>;
  assert.equal(line.level, 'warn');
  assert.equal(line.msg, 'full');
  assert.equal(line.size, 3);
  assert.match(String(line.time), /^\d{4}-\d\d-\d\dT.*Z$/);
});

test('createLog() leaves out what is below its level', () => {
  const lines: string[] = [];
  createLog('warn', { write: (line: string) => void lines.push(line) }).info('quiet');
  assert.deepEqual(lines, []);
});

test('gatherLines() writes the lines of one turn together, whole and in order', async () => {
  const writes: string[] = [];
  const lines = gatherLines({ write: (text: string) => void writes.push(text) });
  for (const line of ['a\n', 'b\n']) lines.write(line);
  assert.deepEqual(writes, []);
  await new Promise(setImmediate);
  assert.deepEqual(writes, ['a\nb\n']);
  lines.write('c\n');
  lines.flush();
  await new Promise(setImmediate);
  assert.deepEqual(writes, ['a\nb\n', 'c\n'], 'what was flushed at the end is not written again');
});

test('a program that ends in the middle of a turn has written its last lines', () => {
  const log = new URL('./log.ts', import.meta.url).href;
  const program = `import { createLog } from '${log}'; createLog('info').info('last words'); process.exit(3);`;
  const run = spawnSync(process.execPath, ['--input-type=module', '--eval', program], { encoding: 'utf8' });
  assert.equal(run.status, 3);
  assert.match(run.stderr, /"last words"/);
  const crash = program.replace('process.exit(3)', "throw new Error('crash')");
  assert.match(
    spawnSync(process.execPath, ['--input-type=module', '--eval', crash], { encoding: 'utf8' }).stderr,
    /"last words"/,
  );
});
