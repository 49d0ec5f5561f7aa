import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';

/** The import rules of docs/architecture.md, executed. */

const AREAS = ['prediction', 'authorization', 'webhooks', 'console'];
const MECHANISMS = ['database', 'http', 'grpc', 'workers', 'telemetry', 'vault', 'pages'];
const COMPOSITION = new Set(['src/app.ts', 'src/main.ts']);

interface SourceFile {
  readonly path: string;
  readonly text: string;
  /** Paths of the files it imports, and names of the packages. */
  readonly imports: readonly string[];
}

const files = globSync('src/**/*.ts').map(readSource);
const production = files.filter((file) => !file.path.endsWith('.test.ts'));

function readSource(path: string): SourceFile {
  const text = readFileSync(path, 'utf8');
  const specifiers = [...text.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map((match) => match[1] ?? '');
  return { path, text, imports: specifiers.map((specifier) => resolveImport(path, specifier)) };
}

function resolveImport(path: string, specifier: string): string {
  return specifier.startsWith('.') ? normalize(join(dirname(path), specifier)) : specifier;
}

function topFolder(path: string): string {
  return path.split('/')[1] ?? '';
}

function isIn(path: string, folders: readonly string[]): boolean {
  return path.startsWith('src/') && path.split('/').length > 2 && folders.includes(topFolder(path));
}

function findOffences(isOffence: (file: SourceFile, imported: string) => boolean): string[] {
  return production.flatMap((file) =>
    file.imports.filter((imported) => isOffence(file, imported)).map((imported) => `${file.path} imports ${imported}`),
  );
}

test('the rules look at the whole program', () => {
  assert.ok(production.length > 10);
  assert.ok(production.some((file) => file.imports.includes('src/errors.ts')));
});

test('only app.ts and main.ts import an area, and only its area.ts', () => {
  const offences = findOffences(
    (file, imported) =>
      isIn(imported, AREAS) &&
      topFolder(file.path) !== topFolder(imported) &&
      !isIn(file.path, ['cli']) &&
      !(COMPOSITION.has(file.path) && imported.endsWith('/area.ts')),
  );
  assert.deepEqual(offences, []);
});

test('cli/ imports rules, stores and workers of areas, and none of the other edges to them', () => {
  const isEdge = /-(routes|service|desk)\.ts$|\/pages\/|\/area\.ts$|^src\/console\//;
  const offences = findOffences(
    (file, imported) => isIn(file.path, ['cli']) && isIn(imported, AREAS) && isEdge.test(imported),
  );
  assert.deepEqual(offences, []);
});

test('mechanisms import vocabulary and mechanisms only', () => {
  const offences = findOffences(
    (file, imported) =>
      isIn(file.path, MECHANISMS) &&
      (isIn(imported, [...AREAS, 'cli', 'config']) || imported === 'src/app.ts' || imported === 'src/main.ts'),
  );
  assert.deepEqual(offences, []);
});

test('gbdt/ imports nothing outside itself', () => {
  const offences = findOffences(
    (file, imported) => file.path.includes('/gbdt/') && !imported.includes('/gbdt/') && !imported.startsWith('node:'),
  );
  assert.deepEqual(offences, []);
});

test('process.env is read in config.ts only', () => {
  const offences = production.filter(
    (file) => file.text.includes('process.env') && file.path !== 'src/config/config.ts',
  );
  assert.deepEqual(
    offences.map((file) => file.path),
    [],
  );
});

test('SQL is written in *-store.ts and database/ only', () => {
  const sql = /\b(SELECT\s[\s\S]{1,400}?\sFROM|INSERT INTO|DELETE FROM|UPDATE\s+\w+\s+SET|CREATE TABLE)\b/;
  const offences = production.filter(
    (file) => sql.test(file.text) && !file.path.endsWith('-store.ts') && !isIn(file.path, ['database']),
  );
  assert.deepEqual(
    offences.map((file) => file.path),
    [],
  );
});
