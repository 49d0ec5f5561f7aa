import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';
import { findEndlessFunctions, findTooLongFunctions, listFunctionLengths } from './support/rules/function-lengths.ts';
import {
  findBaseImportsAbove,
  findCrowdedModules,
  findFileCycles,
  findImportCycles,
  findImportsIntoAreas,
  findImportsOfOtherAreas,
  findImportsOfTests,
  findImpureMathematics,
  findMechanismImportsOfAreas,
  findReadersOfTheEnvironment,
  findSqlOutsideStores,
  findStatementsNamedOtherwise,
  type SourceFile,
} from './support/rules/modules.ts';

/** The import rules of docs/how-it-works/architecture.md, executed; and each of them broken by a made-up program, to see that it can fail. */

const program = readSources('src/**/*.ts');
/** Tests and benchmarks have rooms as the program has modules; the files of tests themselves are apart. */
const everything = [...program, ...readSources('test/**/*.ts'), ...readSources('bench/**/*.ts')];

function readSources(pattern: string): SourceFile[] {
  return globSync(pattern)
    .filter((path) => !/\.test\.ts$|\.d\.ts$|\/assembly\//.test(path))
    .map((path) => readSource(path, readFileSync(path, 'utf8')));
}

function readSource(path: string, text: string): SourceFile {
  const specifiers = [...text.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map((match) => match[1] ?? '');
  return { path, text, imports: specifiers.map((specifier) => resolveImport(path, specifier)) };
}

function resolveImport(path: string, specifier: string): string {
  return specifier.startsWith('.') ? normalize(join(dirname(path), specifier)) : specifier;
}

/** `path: imported, imported` a line. */
function imagine(...lines: readonly string[]): SourceFile[] {
  return lines.map((line) => {
    const [path = '', imports = ''] = line.split(': ');
    return { path, text: '', imports: imports.split(', ').filter((imported) => imported !== '') };
  });
}

const crowd = (folder: string) => Array.from({ length: 21 }, (_, index) => `${folder}/part-${index}.ts`);

type Rule = readonly [rule: string, find: (files: readonly SourceFile[]) => unknown[], broken: readonly SourceFile[]];

/** The rules that tests and benchmarks keep too. */
const rulesOfRooms: readonly Rule[] = [
  [
    'no two modules import each other, directly or through others',
    findImportCycles,
    imagine(
      'src/http/a.ts: src/grpc/call/b.ts',
      'src/grpc/call/b.ts: src/telemetry/c.ts',
      'src/telemetry/c.ts: src/http/d.ts',
    ),
  ],
  [
    'no two rooms of tests and benchmarks import each other',
    findImportCycles,
    imagine(
      'test/support/store/a.ts: test/support/grpc/b.ts',
      'test/support/grpc/b.ts: bench/predict/c.ts',
      'bench/predict/c.ts: test/support/store/d.ts',
    ),
  ],
  [
    'no two files import each other, directly or through others',
    findFileCycles,
    imagine('src/http/a.ts: src/http/b.ts', 'src/http/b.ts: src/http/a.ts'),
  ],
  ['a module has at most 20 source files', findCrowdedModules, imagine(...crowd('src/http'))],
  [
    'a room of tests has at most 20 files beside its tests',
    findCrowdedModules,
    imagine(...crowd('test/support/store')),
  ],
  ['a room of benchmarks has at most 20 files', findCrowdedModules, imagine(...crowd('bench'))],
  [
    'the program imports no test and no benchmark',
    findImportsOfTests,
    imagine('src/http/a.ts: test/support/store/b.ts'),
  ],
];

const rules: readonly Rule[] = [
  ['no area imports another', findImportsOfOtherAreas, imagine('src/webhooks/api/a.ts: src/authorization/tokens/b.ts')],
  [
    'app.ts and main.ts import the area.ts of an area, cli/ whatever it starts, and nothing else an area',
    findImportsIntoAreas,
    imagine('src/app.ts: src/webhooks/hooks/hook.ts'),
  ],
  [
    'mechanisms import no area',
    findMechanismImportsOfAreas,
    imagine('src/http/a.ts: src/prediction/schema/columns.ts'),
  ],
  ['the base files know no framework and no module', findBaseImportsAbove, imagine('src/identity.ts: hono')],
  ['gbdt/ imports nothing outside itself', findImpureMathematics, imagine('src/prediction/gbdt/a.ts: src/errors.ts')],
  [
    'process.env is read in config.ts only',
    findReadersOfTheEnvironment,
    [readSource('src/http/a.ts', 'process.env.HOME')],
  ],
  [
    'SQL is written in *-store.ts and database/ only',
    findSqlOutsideStores,
    [readSource('src/webhooks/hooks/hook.ts', 'DELETE FROM hooks')],
  ],
  [
    'a constant that holds a statement ends in Sql',
    findStatementsNamedOtherwise,
    [readSource('src/webhooks/hooks/hook-store.ts', "const deleteHook = statement('delete-hook', '')")],
  ],
];

test('the rules look at the whole program', () => {
  assert.ok(program.length > 100);
  assert.ok(program.some((file) => file.imports.includes('src/errors.ts')));
});

test('the rules of rooms look at tests and benchmarks', () => {
  assert.ok(everything.some((file) => file.imports.includes('test/support/store/engines.ts')));
  assert.ok(everything.some((file) => file.path.startsWith('bench/')));
});

for (const [rule, find, broken] of [...rulesOfRooms, ...rules]) {
  const files = rulesOfRooms.some(([one]) => one === rule) ? everything : program;
  test(rule, () => assert.deepEqual(find(files), []));
  test(`the rule can fail: ${rule}`, () => assert.notEqual(find(broken).length, 0));
}

const functions = listFunctionLengths('src');

test('nine of ten functions have at most 15 lines', () => {
  assert.ok(functions.length > 5000);
  assert.ok(functions.every(({ lines }) => lines > 0));
  assert.deepEqual(findTooLongFunctions(functions), []);
});

test('no function has more than 60 lines', () => {
  assert.deepEqual(findEndlessFunctions(functions), []);
});

test('the rule can fail: no function has more than 60 lines', () => {
  assert.deepEqual(
    findEndlessFunctions([
      { at: 'a', lines: 61 },
      { at: 'b', lines: 60 },
    ]),
    ['a has 61 lines'],
  );
});

test('the rule can fail: nine of ten functions have at most 15 lines', () => {
  const lengths = [16, 17, ...Array.from({ length: 17 }, () => 15)].map((lines, index) => ({ at: `${index}`, lines }));
  assert.deepEqual(findTooLongFunctions(lengths), ['1 has 17 lines']);
});
