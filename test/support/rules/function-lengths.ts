/** Counts the lines of the functions with the linter: without blank lines and comments, with nested functions. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface FunctionLength {
  /** `src/errors.ts:30`. */
  readonly at: string;
  readonly lines: number;
}

/** Nine of ten functions have at most this many lines. */
const MAX_LINES = 15;
const MAX_LONG_SHARE = 0.1;
/** No function has more; the linter refuses them too. */
const MOST_LINES = 60;

/** Tests, AssemblyScript and generated code. */
const IGNORED = ['**/*.test.ts', '**/assembly/**', 'src/gen/**'];
const CONFIG = {
  plugins: [],
  categories: { correctness: 'off' },
  rules: { 'max-lines-per-function': ['error', { max: 0, skipBlankLines: true, skipComments: true }] },
};

interface Diagnostic {
  readonly message: string;
  readonly filename: string;
  readonly labels: readonly { readonly span: { readonly line: number } }[];
}

/** The lengths of all functions, also of those without a name. */
export function listFunctionLengths(folder: string): FunctionLength[] {
  const configFolder = mkdtempSync(join(tmpdir(), 'trivet-lengths-'));
  try {
    const config = join(configFolder, 'oxlintrc.json');
    writeFileSync(config, JSON.stringify(CONFIG));
    const ignored = IGNORED.map((pattern) => `--ignore-pattern=${pattern}`);
    const args = ['--config', config, ...ignored, '--format', 'json', folder];
    const { stdout } = spawnSync('node_modules/.bin/oxlint', args, { encoding: 'utf8', maxBuffer: 2 ** 28 });
    const { diagnostics } = JSON.parse(stdout) as { readonly diagnostics: readonly Diagnostic[] };
    return diagnostics.map(({ message, filename, labels }) => ({
      at: `${filename}:${labels[0]?.span.line}`,
      lines: Number(/has too many lines \((\d+)\)/.exec(message)?.[1]),
    }));
  } finally {
    rmSync(configFolder, { recursive: true });
  }
}

/** The longest functions, as many as have to become shorter. */
export function findTooLongFunctions(lengths: readonly FunctionLength[]): string[] {
  const long = lengths.filter(({ lines }) => lines > MAX_LINES).sort((one, other) => other.lines - one.lines);
  const tooMany = Math.ceil(long.length - MAX_LONG_SHARE * lengths.length);
  return long.slice(0, Math.max(0, tooMany)).map(({ at, lines }) => `${at} has ${lines} lines`);
}

export function findEndlessFunctions(lengths: readonly FunctionLength[]): string[] {
  return lengths.filter(({ lines }) => lines > MOST_LINES).map(({ at, lines }) => `${at} has ${lines} lines`);
}
