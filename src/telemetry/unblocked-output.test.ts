/** The last output of a process reaches a slow reader, and no reader keeps the process from ending. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';

const LOG = new URL('./log.ts', import.meta.url).href;
/** More bytes than a pipe buffers. */
const LINES = 2000;

/** A process that logs lines, then writes a word to its standard output, and ends when its input ends. */
function startWriter(): ChildProcess {
  const program = `
    import { createLog } from '${LOG}';
    const log = createLog('info');
    for (let index = 0; index < ${LINES}; index++) log.info('line');
    process.stdout.write('written\\n');
    process.stdin.resume().once('end', () => { log.info('the last line'); process.exit(0); });`;
  return spawn(process.execPath, ['--input-type=module', '--eval', program], { stdio: 'pipe' });
}

test('a slow reader gets all lines of a process that ends', async () => {
  const child = startWriter();
  await once(child.stdout!, 'data');
  child.stdin!.end();
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stderr! })) lines.push(line);
  assert.equal(lines.length, LINES + 1);
  // A write that is under way when the process ends may arrive after it.
  assert.equal(lines.filter((line) => line.includes('the last line')).length, 1);
});

test('a process ends whose log is not read', async () => {
  const child = startWriter();
  await once(child.stdout!, 'data');
  child.stdin!.end();
  const [code] = (await once(child, 'exit')) as [number | null];
  assert.equal(code, 0);
});
