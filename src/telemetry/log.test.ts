import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLog } from './log.ts';

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
