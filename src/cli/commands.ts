import type { Command } from 'commander';
import { createAppCommand } from './app.ts';
import { createAuditCommand } from './audit.ts';
import { createBackupCommand } from './backup.ts';
import { createDemoCommand } from './demo.ts';
import { createEventCommand } from './event.ts';
import { createGitHookCommand } from './git-hook.ts';
import { createHookCommand } from './hook.ts';
import { createListenCommand } from './listen.ts';
import { createMigrateCommand } from './migrate.ts';
import { createModelCommand } from './model.ts';
import { createOrgCommand } from './org.ts';
import { createPredictCommand } from './predict.ts';
import { createRepoCommand } from './repo.ts';
import { createServeCommand } from './serve.ts';
import { createSimulateCommand } from './simulate.ts';
import { createTokenCommand } from './token.ts';
import { createUserCommand } from './user.ts';

/** Every group of commands there is, in the order of the help. */
export function createCommands(): Command[] {
  return [
    createServeCommand(),
    createModelCommand(),
    createPredictCommand(),
    createDemoCommand(),
    createSimulateCommand(),
    createUserCommand(),
    createOrgCommand(),
    createAppCommand(),
    createTokenCommand(),
    createAuditCommand(),
    createBackupCommand(),
    createMigrateCommand(),
    createRepoCommand(),
    createHookCommand(),
    createEventCommand(),
    createListenCommand(),
    createGitHookCommand(),
  ];
}
