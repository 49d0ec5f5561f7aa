/** A test for one engine names it in `only`: one that returned at once on the other would pass there without having tested anything. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const RETURN =
  /^ *if \([^\n]*(?:\bengine [!=]== '(?:sqlite|postgres)'|\bdatabaseUrl === undefined)\) (?:\{\s*)?return\b/gm;

function findEarlyReturns(text: string): readonly string[] {
  return (text.match(RETURN) ?? []).map((line) => line.trim());
}

test('no test returns at once on one engine', () => {
  const files = execFileSync('git', ['ls-files', 'src', 'test'], { encoding: 'utf8' }).split('\n');
  const faults = files
    .filter((file) => file.endsWith('.test.ts'))
    .flatMap((file) => findEarlyReturns(readFileSync(file, 'utf8')).map((line) => `${file}: ${line}`));
  assert.deepEqual(faults, []);
});

test('an early return on one engine is found', () => {
  const lines = [
    "if (store.engine === 'sqlite') return",
    "if (engine !== 'postgres') {\n    return",
    'if (place.databaseUrl === undefined) return',
  ];
  for (const line of lines) assert.deepEqual(findEarlyReturns(`  ${line};`), [line]);
  assert.deepEqual(findEarlyReturns("  if (engine === 'postgres') await stop();"), []);
});
