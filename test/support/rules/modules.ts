/** The import rules of docs/how-it-works/architecture.md as functions over a list of files, so that a made-up program can break each. */
import { dirname } from 'node:path';

export interface SourceFile {
  readonly path: string;
  readonly text: string;
  /** Paths of the files it imports, and names of the packages; imports of types count. */
  readonly imports: readonly string[];
}

const AREAS = ['prediction', 'authorization', 'webhooks', 'console'];
/** Every file may import these files, and they import only each other. */
const BASE = ['errors', 'world', 'identity', 'scopes', 'steady-clock', 'open-files'].map((name) => `src/${name}.ts`);
const TOP = ['src/app.ts', 'src/main.ts'];
const MAX_FILES = 20;

/** A folder, or one of the few files outside of folders. */
export function moduleOf(path: string): string {
  const folder = dirname(path);
  return folder === 'src' ? path : folder;
}

function topFolder(path: string): string {
  return path.split('/')[1] ?? '';
}

function isIn(path: string, folders: readonly string[]): boolean {
  return path.startsWith('src/') && path.split('/').length > 2 && folders.includes(topFolder(path));
}

/** Every folder that is neither an area nor the command line. */
function isMechanism(path: string): boolean {
  return path.startsWith('src/') && path.split('/').length > 2 && !isIn(path, [...AREAS, 'cli']);
}

function findOffences(
  files: readonly SourceFile[],
  isOffence: (file: SourceFile, imported: string) => boolean,
): string[] {
  return files.flatMap((file) =>
    file.imports.filter((imported) => isOffence(file, imported)).map((imported) => `${file.path} imports ${imported}`),
  );
}

/** Modules that import each other, directly or through others. */
export function findImportCycles(files: readonly SourceFile[]): string[][] {
  return findCycles(files, moduleOf);
}

/** Files that import each other, directly or through others. */
export function findFileCycles(files: readonly SourceFile[]): string[][] {
  return findCycles(files, (path) => path);
}

function findCycles(files: readonly SourceFile[], nodeOf: (path: string) => string): string[][] {
  const targets = new Map<string, Set<string>>();
  for (const file of files) {
    const own = nodeOf(file.path);
    const others = targets.get(own) ?? new Set();
    targets.set(own, others);
    for (const imported of file.imports)
      if (/^(?:src|test|bench)\//.test(imported) && nodeOf(imported) !== own) others.add(nodeOf(imported));
  }
  const reachable = new Map([...targets.keys()].map((node) => [node, reachFrom(node, targets)]));
  const cycles = [...targets.keys()].map((node) =>
    [...(reachable.get(node) ?? [])].filter((other) => reachable.get(other)?.has(node)).sort(),
  );
  return cycles.filter((cycle, index) => cycle.length > 1 && cycles.findIndex((one) => one[0] === cycle[0]) === index);
}

function reachFrom(start: string, targets: ReadonlyMap<string, ReadonlySet<string>>): ReadonlySet<string> {
  const seen = new Set<string>();
  const waiting = [start];
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop())
    for (const next of targets.get(node) ?? [])
      if (!seen.has(next)) {
        seen.add(next);
        waiting.push(next);
      }
  return seen;
}

export function findCrowdedModules(files: readonly SourceFile[]): string[] {
  const counts = new Map<string, number>();
  for (const { path } of files) counts.set(moduleOf(path), (counts.get(moduleOf(path)) ?? 0) + 1);
  return [...counts].filter(([, count]) => count > MAX_FILES).map(([module, count]) => `${module} has ${count} files`);
}

/** Files of the program that import what only tests and benchmarks need. */
export function findImportsOfTests(files: readonly SourceFile[]): string[] {
  return findOffences(files, ({ path }, imported) => path.startsWith('src/') && /^(?:test|bench)\//.test(imported));
}

export function findImportsOfOtherAreas(files: readonly SourceFile[]): string[] {
  return findOffences(
    files,
    ({ path }, imported) => isIn(path, AREAS) && isIn(imported, AREAS) && topFolder(path) !== topFolder(imported),
  );
}

/** The composition root takes an area as its `area.ts`, the command line as its `commands/`, and the console's list of sections. */
export function findImportsIntoAreas(files: readonly SourceFile[]): string[] {
  return findOffences(files, ({ path }, imported) => {
    if (!isIn(imported, AREAS) || isIn(path, AREAS)) return false;
    if (TOP.includes(path)) return !imported.endsWith('/area.ts');
    return !isIn(path, ['cli']);
  });
}

export function findMechanismImportsOfAreas(files: readonly SourceFile[]): string[] {
  return findOffences(
    files,
    ({ path }, imported) => isMechanism(path) && (isIn(imported, [...AREAS, 'cli']) || TOP.includes(imported)),
  );
}

export function findBaseImportsAbove(files: readonly SourceFile[]): string[] {
  return findOffences(
    files,
    ({ path }, imported) => BASE.includes(path) && !BASE.includes(imported) && !imported.startsWith('node:'),
  );
}

export function findImpureMathematics(files: readonly SourceFile[]): string[] {
  return findOffences(
    files,
    ({ path }, imported) => path.includes('/gbdt/') && !imported.includes('/gbdt/') && !imported.startsWith('node:'),
  );
}

export function findReadersOfTheEnvironment(files: readonly SourceFile[]): string[] {
  return files.filter(({ path, text }) => text.includes('process.env') && path !== 'src/config/config.ts').map(toPath);
}

const SQL = /\b(SELECT\s[\s\S]{1,400}?\sFROM|INSERT INTO|DELETE FROM|UPDATE\s+\w+\s+SET|CREATE TABLE)\b/;

export function findSqlOutsideStores(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path, text }) => SQL.test(text) && !path.endsWith('-store.ts') && !isIn(path, ['database']))
    .map(toPath);
}

const STATEMENT_CONSTANT =
  /\bconst (\w+)(?:: [^=]+)? =\s*(?:statement|multiRowStatement|multiRowInsert)(?:<[^(]*>)?\(/g;

/** A statement and the function that binds its parameters would otherwise want the same name. */
export function findStatementsNamedOtherwise(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text }) => {
    const names = [...text.matchAll(STATEMENT_CONSTANT)].map((match) => match[1] ?? '');
    return names.filter((name) => !name.endsWith('Sql')).map((name) => `${path}: ${name}`);
  });
}

function toPath({ path }: SourceFile): string {
  return path;
}
