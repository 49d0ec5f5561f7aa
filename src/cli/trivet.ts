/**
 * The command line. Exit codes: 0 done, 1 the work failed, 2 the call or the configuration was wrong.
 */
import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import { describeError, isFailure } from '../errors.ts';
import { createAppCommand } from './app.ts';
import { createAuditCommand } from './audit.ts';
import { createBackupCommand } from './backup.ts';
import { createDemoCommand } from './demo.ts';
import { createMigrateCommand } from './migrate.ts';
import { createModelCommand } from './model.ts';
import { createOrgCommand } from './org.ts';
import { remark } from './output.ts';
import { createPredictCommand } from './predict.ts';
import { createServeCommand } from './serve.ts';
import { createSimulateCommand } from './simulate.ts';
import { createTokenCommand } from './token.ts';
import { createUserCommand } from './user.ts';

function createProgram(): Command {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  const { version, description } = JSON.parse(manifest) as { version: string; description: string };
  const program = new Command('trivet').description(description).version(version);
  program.addCommand(createServeCommand());
  program.addCommand(createModelCommand());
  program.addCommand(createPredictCommand());
  program.addCommand(createDemoCommand());
  program.addCommand(createSimulateCommand());
  program.addCommand(createUserCommand());
  program.addCommand(createOrgCommand());
  program.addCommand(createAppCommand());
  program.addCommand(createTokenCommand());
  program.addCommand(createAuditCommand());
  program.addCommand(createBackupCommand());
  program.addCommand(createMigrateCommand());
  return refuseAlike(program);
}

/** Every command of the tree reports its own usage errors in the same way, and never ends the process by itself. */
function refuseAlike(command: Command): Command {
  command.exitOverride().showHelpAfterError('Run with --help to see what is allowed.');
  for (const child of command.commands) refuseAlike(child);
  return command;
}

async function runTrivet(argv: readonly string[]): Promise<number> {
  try {
    await createProgram().parseAsync([...argv], { from: 'user' });
    return 0;
  } catch (error) {
    return reportError(error);
  }
}

function reportError(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  remark(isFailure(error) ? error.message : `Unexpected: ${(error as Error).stack ?? describeError(error)}`);
  return isFailure(error) && error.code === 'invalid' ? 2 : 1;
}

process.exitCode = await runTrivet(process.argv.slice(2));
