import type { Command } from 'commander';
import type { CliStoreOptions } from '../../command-line/open-cli-store.ts';
import { addServiceOptions, openOperator, type ServiceOptions } from '../../command-line/open-operator.ts';
import type { Operator } from '../../operations/call-on-store.ts';
import { implementAdministration } from '../administration/administration.ts';

export interface AnswerOptions extends ServiceOptions {
  readonly json?: true;
}

/** People, organizations and the audit log: of a running service, or of the store of this machine. */
export function openAdministration(options: ServiceOptions, { ifAbsent }: CliStoreOptions = {}): Promise<Operator> {
  const implementOn = implementAdministration;
  return openOperator({ options, implementOn, ...(ifAbsent === undefined ? {} : { ifAbsent }) });
}

/** What every command has that answers: the service it speaks to, and JSON. */
export function addAnswerOptions(command: Command, json = 'print JSON'): Command {
  return addServiceOptions(command.option('--json', json));
}
