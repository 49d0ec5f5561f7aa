/** Lists the files under src/ by module, each with its first sentence, for the pages of files and for their test. */
import { globSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';

export interface SourceFile {
  readonly path: string;
  /** The folder of the file, such as `src/webhooks/intake`. */
  readonly module: string;
  /** Undefined for a file that does not begin with a comment. */
  readonly sentence: string | undefined;
}

/** Every source file but tests and fixtures, ordered by module, then by name. */
export function listSourceFiles(): SourceFile[] {
  return globSync('src/**/*.ts')
    .filter((path) => !path.endsWith('.test.ts') && !path.includes('/fixtures/'))
    .map((path) => ({ path, module: dirname(path), sentence: readFirstSentence(readFileSync(path, 'utf8')) }))
    .sort((left, right) => compareTexts(left.module, right.module) || compareTexts(left.path, right.path));
}

/** The first sentence of the comment before the imports, or right after them. */
export function readFirstSentence(text: string): string | undefined {
  const [, comment] = /^\/\*\*([\s\S]*?)\*\//.exec(dropImports(text)) ?? [];
  const [paragraph = ''] = comment?.split(/\n\s*\*\s*\n/) ?? [];
  const words = paragraph
    .replaceAll(/\n\s*\*/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim();
  if (words === '') return undefined;
  return /^.*?(?<!\bet al)\.(?=\s|$)/.exec(words)?.[0] ?? words;
}

function dropImports(text: string): string {
  return text
    .replace(/^#!.*\n/, '')
    .replaceAll(/^import[\s\S]*?;\n/gm, '')
    .trimStart();
}

/** The order does not depend on the language of the machine. */
function compareTexts(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
