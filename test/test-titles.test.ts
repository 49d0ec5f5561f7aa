/** A test title is a sentence in the present tense that states what holds: in lower case, with a capital only for a name. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const TITLE = /\b(?:test|forEachEngine)\(\s*(['`])((?:\\.|(?!\1).)+)\1/gs;
/** Programs, formats, headers and methods that a title may begin with. */
const NAMES = /^(Authlib|Debian|GuideLLM|OpenShift|Parquet|PostgreSQL|Predict|Retry-After|ServerClock)\b/;

const RULES: [fault: string, pattern: RegExp][] = [
  ['begins with "should", "test" or "it"', /^(should|tests?|it)\b/i],
  ['begins with a capital', /^[A-Z][a-z]/],
  ['ends with a full stop', /\.$/],
];

function findFaults(text: string): string[] {
  return [...text.matchAll(TITLE)].flatMap(([, , title = '']) =>
    RULES.filter(([, pattern]) => pattern.test(title) && !NAMES.test(title)).map(([fault]) => `"${title}" ${fault}`),
  );
}

test('each test title is a sentence of one form', () => {
  const files = execFileSync('git', ['ls-files', 'src', 'test'], { encoding: 'utf8' }).split('\n');
  const faults = files
    .filter((file) => file.endsWith('.test.ts'))
    .flatMap((file) => findFaults(readFileSync(file, 'utf8')).map((fault) => `${file}: ${fault}`));
  assert.deepEqual(faults, []);
});

test('a title of another form is found', () => {
  const write = (title: string) => `${'test'}('${title}', () => {});`;
  assert.deepEqual(findFaults(write('should work')), ['"should work" begins with "should", "test" or "it"']);
  assert.deepEqual(findFaults(write('Rows are read')), ['"Rows are read" begins with a capital']);
  assert.deepEqual(findFaults(write('rows are read.')), ['"rows are read." ends with a full stop']);
  assert.deepEqual(findFaults(write('PostgreSQL answers')), []);
});
