/**
 * The command line. Exit codes: 0 done, 1 the work failed, 2 the call or the configuration was wrong.
 */
import { readFileSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { Command, CommanderError, Help, type Option } from 'commander';
import { remark } from '../command-line/output.ts';
import { describeError, isFailure, isSystemError } from '../errors.ts';
import { loadCommands } from './commands.ts';

async function createProgram(first: string | undefined): Promise<Command> {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  const { version, description } = JSON.parse(manifest) as { version: string; description: string };
  const program = new Command('trivet').description(description).version(version);
  for (const command of await loadCommands(first)) program.addCommand(command);
  return refuseAlike(program);
}

/** Every command of the tree reports its own usage errors in the same way, and never ends the process by itself. */
function refuseAlike(command: Command): Command {
  command.exitOverride().showHelpAfterError('Run with --help to see what is allowed.');
  command.configureHelp({ ...command.configureHelp(), optionDescription });
  for (const child of command.commands) refuseAlike(child);
  return command;
}

const help = new Help();

function optionDescription(option: Option): string {
  return `${option.mandatory ? '(required) ' : ''}${help.optionDescription(option)}`;
}

async function runTrivet(argv: readonly string[]): Promise<number> {
  try {
    const words = readWords(argv);
    const program = await createProgram(words[0]);
    await program.parseAsync(isGroup(program, words) ? [...words, '--help'] : [...words], { from: 'user' });
    return 0;
  } catch (error) {
    return reportError(error);
  }
}

/** `trivet help hook create` is `trivet hook create --help`. */
function readWords(argv: readonly string[]): readonly string[] {
  const [first, ...rest] = argv;
  if (first === 'help') return [...rest, '--help'];
  return first === '-v' ? ['--version'] : argv;
}

/** Words that name commands which have others below them: the person wants to see which. */
function isGroup(program: Command, words: readonly string[]): boolean {
  let here = program;
  for (const word of words) {
    const below = here.commands.find((command) => command.name() === word);
    if (below === undefined) return false;
    here = below;
  }
  return here.commands.length > 0;
}

function reportError(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  remark(isFailure(error) || isSystemError(error) ? error.message : describeUnexpected(error));
  return isFailure(error) && error.code === 'invalid' ? 2 : 1;
}

function describeUnexpected(error: unknown): string {
  return `Unexpected: ${(error as Error).stack ?? describeError(error)}`;
}

/** The reader of the output may close the pipe early, like `| head`. A service goes on without a reader. */
function endWithReader(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
}

if (process.argv[2] !== 'serve') process.stdout.on('error', endWithReader);
// Stripped types and compiled code are kept from one start to the next; a command starts in half the time.
enableCompileCache();
process.exitCode = await runTrivet(process.argv.slice(2));
