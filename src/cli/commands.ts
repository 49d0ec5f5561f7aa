import type { Command } from 'commander';
import { createAuditCommand } from './audit.ts';
import { createDemoCommand } from './demo.ts';
import { createGitHookCommand } from './git-hook.ts';
import { createOrgCommand } from './org.ts';
import { createServeCommand } from './serve.ts';
import { createSimulateCommand } from './simulate.ts';
import { createUserCommand } from './user.ts';

/** Every group of commands there is, in the order of the help. */
export function createCommands(): Command[] {
  return [
    createServeCommand(),
    createSimulateCommand(),
    createUserCommand(),
    createOrgCommand(),
    createAuditCommand(),
    createGitHookCommand(),
    createDemoCommand(),
  ];
}
