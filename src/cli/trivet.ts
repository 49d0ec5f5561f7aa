/** Dispatches the command line, and maps outcomes to exit codes: 0 done, 1 failed, 2 usage or configuration error. */
import { readFileSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { Command, CommanderError } from 'commander';
import { remark } from '../command-line/output.ts';
import { describeError, isFailure, isSystemError } from '../errors.ts';
import { loadCommands } from './commands.ts';

const VERSION_FLAG = '--version';

async function createProgram(first: string | undefined): Promise<Command> {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  const { version, description } = JSON.parse(manifest) as { version: string; description: string };
  const program = new Command('trivet').description(description).version(version);
  if (first !== VERSION_FLAG) for (const command of await loadCommands(first)) program.addCommand(command);
  return reportUsageErrors(program);
}

/** Makes every command of the tree report usage errors in the same way, and never end the process itself. */
function reportUsageErrors(command: Command): Command {
  command.exitOverride().showHelpAfterError('Run with --help to see what is allowed.');
  for (const child of command.commands) reportUsageErrors(child);
  return command;
}

async function runTrivet(argv: readonly string[]): Promise<number> {
  try {
    const words = readWords(argv);
    const program = await createProgram(words[0]);
    await program.parseAsync(chooseWords(program, words), { from: 'user' });
    return 0;
  } catch (error) {
    return reportError(error);
  }
}

/** `trivet help hook create` is `trivet hook create --help`. */
function readWords(argv: readonly string[]): readonly string[] {
  const [first, ...rest] = argv;
  if (first === 'help') return [...rest, '--help'];
  return first === '-v' || first === '-V' ? [VERSION_FLAG] : argv;
}

/**
 * A group alone shows its help. With `--help` after a word that is not a command, Commander would show the help of the group as if
 * the word were valid; without `--help` it refuses the word.
 */
function chooseWords(program: Command, words: readonly string[]): string[] {
  const { command, rest } = followNames(program, words);
  if (command.commands.length === 0) return [...words];
  if (rest.length === 0) return [...words, '--help'];
  return rest[0]?.startsWith('-') ? [...words] : words.filter((word) => !HELP_FLAGS.has(word));
}

const HELP_FLAGS: ReadonlySet<string> = new Set(['--help', '-h']);

/** Returns the command that the first words name, and the remaining words. */
function followNames(command: Command, words: readonly string[]): Followed {
  const [first, ...rest] = words;
  const below = command.commands.find((each) => each.name() === first);
  return below === undefined ? { command, rest: words } : followNames(below, rest);
}

interface Followed {
  readonly command: Command;
  readonly rest: readonly string[];
}

function reportError(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  remark(isFailure(error) || isSystemError(error) ? error.message : describeUnexpected(error));
  return isFailure(error) && error.code === 'invalid' ? 2 : 1;
}

function describeUnexpected(error: unknown): string {
  return `Unexpected: ${(error as Error).stack ?? describeError(error)}`;
}

/** The reader of the output may close the pipe early, like `| head`. A service continues without a reader. */
function endWithReader(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
}

if (process.argv[2] !== 'serve') process.stdout.on('error', endWithReader);
// Code with stripped types and compiled code are cached between starts, which halves the start time of a command.
enableCompileCache();
process.exitCode = await runTrivet(process.argv.slice(2));
