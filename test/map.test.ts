import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { test } from 'node:test';

/**
 * The map in docs/how-it-works/architecture.md has a line for each module under src/, and no line for another. The files that its
 * tables name exist below the folder of their heading, and each begins with a sentence about itself.
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

/** Files whose text has no comment before the imports or right after them. */
function findSilentFiles(text: string, read: (path: string) => string): string[] {
  const paths = new Set(listNamedFiles(text).flatMap((file) => file.paths));
  return [...paths].filter((path) => !dropImports(read(path)).startsWith('/**'));
}

function dropImports(text: string): string {
  return text.replaceAll(/^import[\s\S]*?;\n/gm, '').trimStart();
}

test('each file that the map names begins with a sentence', () => {
  assert.deepEqual(
    findSilentFiles(MAP, (path) => readFileSync(path, 'utf8')),
    [],
  );
});

test('a file without a sentence is found', () => {
  assert.ok(findSilentFiles(MAP, () => "import a from 'a';\n\nconst LIMIT = 1;\n").includes('src/errors.ts'));
});

test('the files that the map names exist', () => {
  assert.deepEqual(findMissingFiles(MAP), []);
});

test('a file that does not exist is found', () => {
  const moved = MAP.replace('`delivery/schedule/retry-policy.ts`', '`delivery/queue/retry-policy.ts`');
  assert.deepEqual(findMissingFiles(moved), ['delivery/queue/retry-policy.ts']);
});
