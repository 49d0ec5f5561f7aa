/** Adds a subcommand of `trivet hook` with the options that all of them have. */
import type { Command } from 'commander';
import {
  addServiceOptions,
  addServiceOptionsBesideUrl,
  type ServiceOptions,
} from '../../command-line/open-operator.ts';

export interface HookOptions extends ServiceOptions {
  readonly json?: true;
}

/** Adds a subcommand with the options that all have: the service to use, and JSON output. */
export function addHookCommand(command: Command, words: string, description: string, json = 'print JSON'): Command {
  return addServiceOptions(command.command(words).description(description).option('--json', json));
}

/** The same for commands whose `--url` is the address of a receiver. */
export function addHookCommandWithUrl(command: Command, words: string, description: string, json: string): Command {
  return addServiceOptionsBesideUrl(command.command(words).description(description).option('--json', json));
}
