/** Lists the files under src/ and clients/ by module, each with its first sentence, for the pages of files and for their test. */
import { globSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';

export interface SourceFile {
  readonly path: string;
  /** The folder of the file, such as `src/webhooks/intake`. */
  readonly module: string;
  /** Undefined for a file that does not begin with a comment. */
  readonly sentence: string | undefined;
}

/** Lists all source files except tests and fixtures, ordered by module, then by name. */
export function listSourceFiles(): SourceFile[] {
  return describeEach(globSync('src/**/*.ts').filter((path) => !path.includes('/fixtures/')));
}

/** Lists the files of the clients that a gateway uses or copies, without tests and generated code. */
export function listClientFiles(): SourceFile[] {
  return describeEach(
    globSync('clients/**/*.{ts,go,py}').filter((path) => !/\/(gen|tests|build|node_modules)\//.test(path)),
  );
}

function describeEach(paths: readonly string[]): SourceFile[] {
  return paths
    .filter((path) => !/(\.test\.ts|_test\.go)$/.test(path))
    .map((path) => ({ path, module: dirname(path), sentence: readFirstSentence(readFileSync(path, 'utf8')) }))
    .sort((left, right) => compareTexts(left.module, right.module) || compareTexts(left.path, right.path));
}

/** Returns the first sentence of the comment at the start of a TypeScript, Go or Python file. */
export function readFirstSentence(text: string): string | undefined {
  const [paragraph = ''] = readFirstComment(text.replace(/^#!.*\n/, '')).split(/\n\s*\n/);
  const words = paragraph.replaceAll(/\s+/g, ' ').trim();
  if (words === '') return undefined;
  return /^.*?(?<!\bet al)\.(?=\s|$)/.exec(words)?.[0] ?? words;
}

/** Returns the text without comment marks, and without the name that Go puts first, as in "Package router chooses a server". */
function readFirstComment(text: string): string {
  const [, block, docstring, lines] = /^(?:\/\*\*([\s\S]*?)\*\/|"""([\s\S]*?)"""|((?:\/\/.*\n)+))/.exec(text) ?? [];
  if (lines === undefined) return block?.replaceAll(/^\s*\*/gm, '') ?? docstring ?? '';
  const plain = lines.replaceAll(/^\/\/ ?/gm, '').replace(/^(?:Package|Command) \w+ /, '');
  return plain.charAt(0).toUpperCase() + plain.slice(1);
}

/** Compares by code unit, so that the order does not depend on the locale of the machine. */
function compareTexts(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
