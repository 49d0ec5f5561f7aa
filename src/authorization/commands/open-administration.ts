/** Opens the administration for a command, on the store or at a running service. */
import type { Command } from 'commander';
import type { CliStore, CliStoreOptions } from '../../command-line/open-cli-store.ts';
import { addServiceOptions, openOperator, type ServiceOptions } from '../../command-line/open-operator.ts';
import { toUrlHost } from '../../ip/ip-address.ts';
import { createMailer, isMailOn } from '../../mail/mailer.ts';
import type { Operator } from '../../operations/call-on-store.ts';
import { implementAdministration } from '../administration/administration.ts';

export interface AnswerOptions extends ServiceOptions {
  readonly json?: true;
}

/** Opens people, organizations and the audit log of a running service, or of the store of this machine. */
export function openAdministration(options: ServiceOptions, { ifAbsent }: CliStoreOptions = {}): Promise<Operator> {
  const implementOn = (cli: CliStore) => implementAdministration(toDependencies(cli));
  return openOperator({ options, implementOn, ...(ifAbsent === undefined ? {} : { ifAbsent }) });
}

/** Links have the address of a service with these settings. Mails stay in the store until that service sends them. */
function toDependencies({ store, world, cipher, config: { server, mail, authorization } }: CliStore) {
  const { upstreamIssuer: issuer } = authorization;
  const baseUrl = server.authUrl ?? `http://${toUrlHost(server.host)}:${server.httpPort}`;
  return {
    store,
    world,
    cipher,
    baseUrl,
    upstream: issuer === undefined ? undefined : { config: { issuer } },
    mailer: isMailOn(mail) ? createMailer({ cipher, world }) : undefined,
  };
}

/** Adds the options of every command that prints a result: the service to use, and JSON. */
export function addAnswerOptions(command: Command, json = 'print JSON'): Command {
  return addServiceOptions(command.option('--json', json));
}
