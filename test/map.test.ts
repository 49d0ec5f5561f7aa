import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { test } from 'node:test';
import { listClientFiles, listSourceFiles, readFirstSentence, type SourceFile } from '../scripts/list-source-files.ts';

/**
 * The map in docs/how-it-works/architecture.md has a line for each module under src/, and no line for another. The files that its
 * tables name exist below the folder of their heading. Every source file begins with a sentence by which a stranger can choose it: the
 * pages in docs/how-it-works/files/ list these sentences.
 */

const MAP = readFileSync('docs/how-it-works/architecture.md', 'utf8');
const modules = new Set(
  globSync('src/**/*.ts')
    .filter((path) => !path.endsWith('.test.ts') && !path.includes('/fixtures/'))
    .map((path) => dirname(path).replace(/^src\/?/, '')),
);
modules.delete('');

/** The folders that the table names, below `src/`. A name in parentheses is below the one before them. */
function readMap(text: string): string[] {
  const folders: string[] = [];
  let area = '';
  for (const [, cell = ''] of text.matchAll(/^\| (.+?) \| .*\|$/gm)) {
    const heading = /^\*\*(.+)\*\*$/.exec(cell)?.[1];
    if (heading !== undefined) area = heading === 'mechanisms' ? '' : heading;
    if (heading?.endsWith('/')) folders.push(heading.slice(0, -1));
    let outer = '';
    for (const [, opening = '', name = ''] of cell.matchAll(/(\(?)`([\w/-]+)\/`/g)) {
      const isInner = opening === '(' || (outer !== '' && isInParentheses(cell, name));
      if (!isInner) outer = area + name;
      folders.push(isInner ? `${outer}/${name}` : outer);
    }
  }
  return folders;
}

function isInParentheses(cell: string, name: string): boolean {
  const before = cell.slice(0, cell.indexOf(`\`${name}/\``));
  return before.lastIndexOf('(') > before.lastIndexOf(')');
}

function findMistakes(text: string): string[] {
  const listed = readMap(text);
  return [
    ...[...modules].filter((folder) => !listed.includes(folder)).map((folder) => `${folder} has no line`),
    ...listed.filter((folder) => !existsSync(`src/${folder}`)).map((folder) => `${folder} does not exist`),
  ];
}

test('the map has a line for each module', () => {
  assert.deepEqual(findMistakes(MAP), []);
});

test('a module without a line, and a line without a module, are found', () => {
  const without = MAP.replace('`sharing/`', '`lending/`');
  assert.deepEqual(findMistakes(without), ['prediction/sharing has no line', 'prediction/lending does not exist']);
});

/** The rooms of tests and benchmarks: folders with files beside tests. */
const rooms = new Set(
  globSync(['test/*/**/*.ts', 'bench/**/*.ts'])
    .filter((path) => !path.endsWith('.test.ts') && !path.includes('/fixtures/'))
    .map(dirname),
);

function findRoomMistakes(text: string): string[] {
  const listed = [...text.matchAll(/^\| `((?:test|bench)[\w/-]*)\/` \|/gm)].map(([, room = '']) => room);
  return [
    ...[...rooms].filter((room) => !listed.includes(room)).map((room) => `${room} has no line`),
    ...listed.filter((room) => !existsSync(room)).map((room) => `${room} does not exist`),
  ];
}

const CONTRIBUTING = readFileSync('CONTRIBUTING.md', 'utf8');

test('CONTRIBUTING.md has a line for each room of tests and benchmarks', () => {
  assert.ok(rooms.has('test/support/store') && rooms.has('bench'));
  assert.deepEqual(findRoomMistakes(CONTRIBUTING), []);
});

test('a room without a line, and a line without a room, are found', () => {
  const without = CONTRIBUTING.replace('`test/support/store/`', '`test/support/shop/`');
  const mistakes = ['test/support/store has no line', 'test/support/shop does not exist'];
  assert.deepEqual(findRoomMistakes(without), mistakes);
});

interface NamedFile {
  readonly name: string;
  /** Paths of the files with this name; none when there is no such file. */
  readonly paths: readonly string[];
}

/** The files that the tables name. A heading such as "In prediction/" names the folder that has them. */
function listNamedFiles(text: string): NamedFile[] {
  let folder = '';
  return text.split('\n').flatMap((line) => {
    if (line.startsWith('#')) folder = /^### In `([\w/]+\/)`/.exec(line)?.[1] ?? '';
    if (!line.startsWith('|')) return [];
    const names = [...line.matchAll(/`([\w/-]+\.ts)`/g)].map(([, name = '']) => name);
    return names.map((name) => ({ name, paths: globSync([`src/${folder}**/${name}`, `src/${name}`]) }));
  });
}

function findMissingFiles(text: string): string[] {
  return listNamedFiles(text).flatMap(({ name, paths }) => (paths.length === 0 ? [name] : []));
}

test('the files that the map names exist', () => {
  assert.deepEqual(findMissingFiles(MAP), []);
});

test('a file that does not exist is found', () => {
  const moved = MAP.replace('`delivery/schedule/retry-policy.ts`', '`delivery/queue/retry-policy.ts`');
  assert.deepEqual(findMissingFiles(moved), ['delivery/queue/retry-policy.ts']);
});

const MAX_SENTENCE_LENGTH = 140;
/** A verb in the third person, with the file as its subject: "Decides", "Reads". */
const OPENING_VERB = /^[A-Z][a-z]+s,? /;

function findPoorSentences(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, sentence }) => {
    if (sentence === undefined) return [`${path} does not begin with a comment`];
    if (!sentence.endsWith('.')) return [`${path} begins with a sentence without a period`];
    if (sentence.length > MAX_SENTENCE_LENGTH)
      return [`${path} begins with a sentence of ${sentence.length} characters`];
    return OPENING_VERB.test(sentence) ? [] : [`${path} begins with a sentence that does not open with a verb`];
  });
}

/** Pairs of one module where all words of one sentence are in the other too: it could stand for both files. */
function findAlikeSentences(files: readonly SourceFile[]): string[] {
  const listed = files.map((file) => ({ ...file, words: listWords(file.sentence ?? '') }));
  return [...Map.groupBy(listed, (file) => file.module).values()].flatMap((own) =>
    own.flatMap((file) =>
      own
        .filter((other) => other.path !== file.path && file.words.isSubsetOf(other.words))
        .map((other) => `${file.path} says no more than ${other.path}`),
    ),
  );
}

function listWords(sentence: string): Set<string> {
  return new Set(sentence.toLowerCase().match(/[\p{L}\p{N}]+/gu));
}

const files = [...listSourceFiles(), ...listClientFiles()];

test('each source file begins with a sentence that opens with a verb, and so does each file of the clients', () => {
  for (const language of ['ts', 'go', 'py'])
    assert.ok(
      files.some(({ path }) => path.startsWith('clients/') && path.endsWith(`.${language}`)),
      language,
    );
  assert.deepEqual(findPoorSentences(files), []);
});

test('no sentence of a file could stand for another file of its module', () => {
  assert.deepEqual(findAlikeSentences(files), []);
});

test('the first sentence of a file ends at its period, not at that of "et al."', () => {
  const text = '/** Adapts levels (Gibbs et al. 2021). More of it. */';
  assert.equal(readFirstSentence(text), 'Adapts levels (Gibbs et al. 2021).');
});

test('a file with a poor sentence is found', () => {
  const begin = (text: string): SourceFile => ({
    path: 'src/a/b.ts',
    module: 'src/a',
    sentence: readFirstSentence(text),
  });
  const cases: [text: string, mistake: string | undefined][] = [
    ['/** Reads a file. More of it. */\nimport a from "a";\n', undefined],
    ['/**\n * Reads a\n * file.\n *\n * More of it\n */', undefined],
    ['#!/usr/bin/env node\n/** Reads a file. */', undefined],
    ['import {\n  a,\n} from "a";\n\n/** Reads a file. */', 'src/a/b.ts does not begin with a comment'],
    ['"""Reads a file.\n\nMore of it."""\nimport a\n', undefined],
    ['// Reads a\n// file. More of it.\n\npackage a\n', undefined],
    ['// Package a reads a file.\npackage a\n', undefined],
    ['package a\n\n// Reads a file.\n', 'src/a/b.ts does not begin with a comment'],
    ["import a from 'a';\n\nconst LIMIT = 1;\n/** Reads a file. */", 'src/a/b.ts does not begin with a comment'],
    ['/** Reads a file */', 'src/a/b.ts begins with a sentence without a period'],
    [`/** Reads ${'a'.repeat(140)}. */`, 'src/a/b.ts begins with a sentence of 147 characters'],
    ['/** The reading of a file. */', 'src/a/b.ts begins with a sentence that does not open with a verb'],
  ];
  for (const [text, mistake] of cases)
    assert.deepEqual(findPoorSentences([begin(text)]), mistake === undefined ? [] : [mistake], text);
});

test('sentences that could be exchanged are found within a module', () => {
  const list = (...sentences: string[]): SourceFile[] =>
    sentences.map((sentence, index) => ({ path: `src/a/${index}.ts`, module: 'src/a', sentence }));
  assert.deepEqual(findAlikeSentences(list('Reads hooks.', 'Reads hooks of an owner.')), [
    'src/a/0.ts says no more than src/a/1.ts',
  ]);
  assert.deepEqual(findAlikeSentences(list('Reads hooks of a person.', 'Reads hooks of an owner.')), []);
});
