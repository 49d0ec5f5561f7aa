import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLog } from './log.ts';
import { toReadableLine } from './readable-log.ts';

function write(act: (log: ReturnType<typeof createLog>) => void, isColoured = false): string {
  const lines: string[] = [];
  act(createLog('info', { write: (line: string) => void lines.push(toReadableLine(line, isColoured)) }));
  return lines.join('');
}

test('a line has the time of day, the level, the text and the fields', () => {
  const line = write((log) => log.warn({ model: 'm', tookMs: 3, why: 'two words' }, 'Slow'));
  assert.match(line, /^\d\d:\d\d:\d\d\.\d{3} WARN {2}Slow model=m tookMs=3 why="two words"\n$/);
});

test('only the levels that need a look are coloured', () => {
  assert.ok(write((log) => log.error('Lost'), true).startsWith('\u001b[31m'));
  assert.ok(!write((log) => log.info('Fine'), true).includes('\u001b'));
});

test('a stack is on lines of its own', () => {
  const lines = write((log) => log.error({ err: new Error('broken') }, 'Failed')).split('\n');
  assert.match(lines[0] ?? '', /ERROR Failed$/);
  assert.equal(lines[1], '    Error: broken');
  assert.match(lines[2] ?? '', /^ {8}at /);
});

test('control characters of strangers do not reach the terminal', () => {
  const line = write((log) =>
    log.info({ path: '/\u001b[2J\u009b', err: new Error('a\u001b]0;b') }, 'Asked\u001b[2J\r'),
  );
  assert.equal(/[^\P{Cc}\n]/u.test(line), false, JSON.stringify(line));
  assert.match(line, /Asked\\u001b\[2J\\u000d path="\/\\u001b/);
});

test('what is no entry of the log stays as it is', () => {
  assert.equal(toReadableLine('plain text\n', false), 'plain text\n');
});
