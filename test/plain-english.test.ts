/** Code, tests and pages avoid the words of `support/rules/words-to-avoid.ts`. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { WORDS_TO_AVOID } from './support/rules/words-to-avoid.ts';

const KINDS = /\.(ts|md|proto|go|py|yaml|toml|css)$/;
/** Texts of others, and this list itself. */
const EXEMPT = /fixtures\/|CHANGELOG\.md$|docs\/decisions\/|words-to-avoid\.ts$|plain-english\.test\.ts$/;

const PATTERNS = WORDS_TO_AVOID.map(([pattern, instead]) => ({
  pattern: new RegExp(`(?<![\\w-])(?:${pattern})(?![\\w-])`, 'gi'),
  instead,
}));

function listFiles(): string[] {
  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { encoding: 'utf8' });
  return files.split('\n').filter((file) => KINDS.test(file) && !EXEMPT.test(file));
}

/** In Python's code, as in `if value is None`; a sentence has it in lower case. */
const NONE_OF_PYTHON = /\bis None\b/g;

function findWords(file: string, text: string): string[] {
  return (file.endsWith('.py') ? text.replace(NONE_OF_PYTHON, '') : text)
    .split('\n')
    .flatMap((line, index) =>
      PATTERNS.flatMap(({ pattern, instead }) =>
        [...line.matchAll(pattern)].map(([word]) => `${file}:${index + 1} "${word}": ${instead}`),
      ),
    );
}

test('no line has a word to avoid', () => {
  assert.deepEqual(
    listFiles().flatMap((file) => findWords(file, readFileSync(file, 'utf8'))),
    [],
  );
});

test('a word to avoid is found with its line', () => {
  assert.deepEqual(findWords('a.md', 'Good.\nIt Can not.'), ['a.md:2 "Can not": cannot']);
  assert.deepEqual(findWords('a.md', 'Kennel, cannot, re-told-ed, someone'), []);
  assert.deepEqual(findWords('a.py', 'if a is None:\n    # There is none.'), [
    'a.py:2 "is none": say what it is not, or "without …"',
  ]);
});
