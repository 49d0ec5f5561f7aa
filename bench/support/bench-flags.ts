import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { type ParseArgsConfig, parseArgs } from 'node:util';

/**
 * The flags of a bench, as `parseArgs` reads them. `--help` prints the comment at the head of the bench and ends the process;
 * a flag that is unknown or lacks its value ends it with exit code 2 and one line that names what is allowed.
 */
export function readBenchFlags<T extends ParseArgsConfig>(config: T): ReturnType<typeof parseArgs<T>> {
  const [, script = '', ...args] = process.argv;
  if (args.includes('--help')) {
    process.stdout.write(formatHelp(readFileSync(script, 'utf8')));
    process.exit(0);
  }
  try {
    return parseArgs(config);
  } catch (error) {
    if (!isFlagError(error)) throw error;
    process.stderr.write(`Cannot run ${relative('.', script)}: ${describeRefusal(error, config)}\n`);
    process.exit(2);
  }
}

/** The first comment of a file, without its stars. */
function formatHelp(source: string): string {
  const [, comment = ''] = /\/\*\*([\s\S]*?)\*\//.exec(source) ?? [];
  return `${comment.replace(/^ *\* ?/gm, '').trim()}\n`;
}

function isFlagError(error: unknown): error is Error & { readonly code: string } {
  return error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS_');
}

/** Writes the first sentence of the error of `parseArgs`, whose others are advice, and the flags that the bench takes. */
function describeRefusal({ message }: Error, { options = {} }: ParseArgsConfig): string {
  const [reason = ''] = message.split(/\.\s/);
  const flags = Object.entries(options).map(([name, { type }]) => `--${name}${type === 'string' ? ' VALUE' : ''}`);
  return `${reason.charAt(0).toLowerCase()}${reason.slice(1)}; allowed are ${['--help', ...flags].join(', ')}`;
}
