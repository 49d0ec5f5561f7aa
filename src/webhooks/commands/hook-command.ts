import type { Command } from 'commander';
import { addServiceOptionsBesideUrl, type ServiceOptions } from '../../command-line/open-operator.ts';

export interface HookOptions extends ServiceOptions {
  readonly json?: true;
}

/** What every command about webhooks has: the service it speaks to, and JSON. */
export function addHookCommand(command: Command, words: string, description: string, json = 'print JSON'): Command {
  return addServiceOptionsBesideUrl(command.command(words).description(description).option('--json', json));
}
