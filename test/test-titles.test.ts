/** Checks the titles that stand in the files of tests; `npm test` checks all of them as they run, with their parameters. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { findTitleFaults, NAMES } from './support/rules/test-titles.ts';

const TITLE = /\b(?:test|suite|describe|forEachEngine)\(\s*(['"`])((?:\\.|(?!\1).)+)\1/gs;

function listTitles(text: string): string[] {
  return [...text.matchAll(TITLE)].map(([, , title = '']) => title);
}

const files = execFileSync('git', ['ls-files', 'src', 'test'], { encoding: 'utf8' })
  .split('\n')
  .filter((file) => file.endsWith('.test.ts'))
  .map((file) => ({ file, text: readFileSync(file, 'utf8') }));

test('each test title is a sentence of one form', () => {
  const faults = files.flatMap(({ file, text }) =>
    listTitles(text)
      .flatMap(findTitleFaults)
      .map((fault) => `${file}: ${fault}`),
  );
  assert.deepEqual(faults, []);
});

test('each name that a title may begin with is in a title', () => {
  const isUsed = (name: string): boolean => files.some(({ text }) => new RegExp(`['"\`]${name}(?![\\w-])`).test(text));
  assert.deepEqual(
    NAMES.filter((name) => !isUsed(name)),
    [],
  );
});

test('a title of another form is found', () => {
  const find = (title: string) => listTitles(`${'test'}('${title}', () => {});`).flatMap(findTitleFaults);
  assert.deepEqual(find('should work'), ['"should work" begins with "should", "test" or "it"']);
  assert.deepEqual(find('Rows are read'), ['"Rows are read" begins with a capital']);
  assert.deepEqual(find('rows are read.'), ['"rows are read." ends with a full stop']);
  assert.deepEqual(find('PostgreSQL answers.'), ['"PostgreSQL answers." ends with a full stop']);
  assert.deepEqual(find('PostgreSQL answers'), []);
  assert.deepEqual(find('test/fleet/main.ts answers'), []);
});
