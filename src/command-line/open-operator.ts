/**
 * What a command about the administration speaks to: a running service when one is named or signed in to, otherwise the
 * store of this machine. The same operations either way, and so the same output.
 */
import type { Command } from 'commander';
import { readConfig, readUserEnvironment } from '../config/config.ts';
import { hasDatabase } from '../database/startup/open-store.ts';
import { Failure } from '../errors.ts';
import { callOnStore, type Operator } from '../operations/call-on-store.ts';
import { callService, type Service } from '../operations/call-service.ts';
import { COMMAND_LINE, type Implementation } from '../operations/operation.ts';
import { realWorld } from '../world.ts';
import { readLogins, withLogin, writeLogins } from './logins.ts';
import { type CliStore, type CliStoreOptions, openCliStore } from './open-cli-store.ts';
import { remark } from './output.ts';
import { isEnding, refreshLogin } from './refresh-login.ts';
import { readServiceUrl } from './service-url.ts';

export interface ServiceOptions {
  readonly url?: string;
  readonly token?: string;
}

/** Every command that can speak to a running service has these. */
export function addServiceOptions(command: Command): Command {
  return command
    .option(
      '--url <url>',
      'a running service to speak to (also TRIVET_URL); a login or the store of this machine unless given',
    )
    .option('--token <token>', 'a token for it (also TRIVET_TOKEN); that of trivet login unless given');
}

export interface OperatorParts extends CliStoreOptions {
  readonly options: ServiceOptions;
  /** What does the work on the store. */
  readonly implementOn: (cli: CliStore) => readonly Implementation[] | Promise<readonly Implementation[]>;
}

export async function openOperator({ options, implementOn, ifAbsent }: OperatorParts): Promise<Operator> {
  const service = await findService(options);
  if (service !== undefined) return callServiceOnly(service);
  await using undo = new AsyncDisposableStack();
  const cli = undo.use(await openCliStore({ ifAbsent: ifAbsent ?? 'refuse' }));
  const implementations = await implementOn(cli);
  const opened = undo.move();
  return {
    call: (operation, input, file = new Uint8Array()) =>
      callOnStore(implementations, operation, { input, file, actor: COMMAND_LINE }),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

function callServiceOnly(service: Service): Operator {
  return {
    call: async (operation, input, file) =>
      (await callService(service, { operation, input: input as Record<string, unknown>, file })) as never,
    [Symbol.asyncDispose]: async () => {},
  };
}

/** Undefined when the store of this machine is meant: it is there, or there is no login. */
async function findService({ url: given, token: shown }: ServiceOptions): Promise<Service | undefined> {
  const environment = readUserEnvironment();
  const named = given ?? environment.url;
  const token = shown ?? environment.token;
  if (named === undefined && shown !== undefined)
    throw new Failure('invalid', 'Cannot use --token without --url: say which service it is for');
  if (named === undefined && hasOwnStore()) return undefined;
  const { configFolder } = environment;
  const url = named === undefined ? (await readLogins(configFolder)).preferred : readServiceUrl(named);
  if (url === undefined) return undefined;
  if (named === undefined) remark(`On ${url} (there is no store here)`);
  if (named !== undefined && token !== undefined) return { url, token };
  return { url, token: await readToken(configFolder, url) };
}

function hasOwnStore(): boolean {
  const { store } = readConfig();
  return store.databaseUrl !== undefined || hasDatabase(store.dataDir);
}

async function readToken(configFolder: string | undefined, url: string): Promise<string> {
  const logins = await readLogins(configFolder);
  const login = logins.hosts[url];
  if (login === undefined)
    throw new Failure('unauthenticated', `No login for ${url}: sign in with trivet login ${url}, or give --token`);
  const nowMs = realWorld.nowMs();
  if (!isEnding(login, nowMs)) return login.token;
  const fresh = await refreshLogin(url, login, nowMs);
  await writeLogins(configFolder, { ...withLogin(logins, url, fresh), preferred: logins.preferred });
  return fresh.token;
}
