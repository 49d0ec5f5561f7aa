/** Tests await signals. One that sleeps all the same says why in a comment close by: time is what it tests, or nothing tells it more. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

const SLEEP = /\b(?:sleep|setTimeout)\(/;
const COMMENT = /^\s*(?:\/\/|\/\*\*|\*)/;
/** A comment stands above the statement, which may take some lines. */
const LINES_ABOVE = 3;

function findUnexplainedSleeps(path: string, text: string): string[] {
  const lines = text.split('\n');
  return lines.flatMap((line, index) => {
    const above = lines.slice(Math.max(0, index - LINES_ABOVE), index);
    const isExplained = COMMENT.test(line) || above.some((other) => COMMENT.test(other));
    return SLEEP.test(line) && !isExplained ? [`${path}:${index + 1}: ${line.trim()}`] : [];
  });
}

test('each sleep of a test has a comment that says why', () => {
  const paths = globSync(['src/**/*.test.ts', 'test/**/*.ts']);
  assert.ok(paths.length > 300);
  assert.deepEqual(
    paths
      .filter((path) => path !== 'test/sleeps.test.ts')
      .flatMap((path) => findUnexplainedSleeps(path, readFileSync(path, 'utf8'))),
    [],
  );
});

test('findUnexplainedSleeps() finds a sleep without a comment', () => {
  assert.deepEqual(findUnexplainedSleeps('a.ts', 'go();\nawait sleep(50);'), ['a.ts:2: await sleep(50);']);
  assert.deepEqual(findUnexplainedSleeps('a.ts', '// No event tells it.\nawait sleep(50);'), []);
});
