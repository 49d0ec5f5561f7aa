/**
 * Decides whether an administration command uses a running service or the store of this machine. It uses a service that is named;
 * otherwise the store of this machine, if there is one; else the service of the last login. The operations are the same in each
 * case, and so is the output.
 */
import { type Command, Option } from 'commander';
import { readConfig, readUserEnvironment } from '../config/config.ts';
import { hasDatabase } from '../database/startup/open-store.ts';
import { Failure } from '../errors.ts';
import { callOnStore, type Operator } from '../operations/call-on-store.ts';
import { callService, readServiceTimeMs, type Service } from '../operations/call-service.ts';
import { COMMAND_LINE, type Implementation } from '../operations/operation.ts';
import { realWorld } from '../world.ts';
import { type Login, type Logins, lockLogins, readLogins, withRefreshedLogin } from './logins.ts';
import { type CliStore, type CliStoreOptions, openCliStore } from './open-cli-store.ts';
import { remark } from './output.ts';
import { isEnding, refreshLogin } from './refresh-login.ts';
import { readServiceUrl } from './service-url.ts';

export interface ServiceOptions {
  readonly service?: string;
  readonly token?: string;
}

const SERVICE = 'a running service to speak to (also TRIVET_URL); the store of this machine or a login unless given';

/** The options of every command that can use a running service. */
export function addServiceOptions(command: Command): Command {
  return addToken(command.option('--url, --service <url>', SERVICE));
}

/** The same options for a command whose --url is the address of a receiver. */
export function addServiceOptionsBesideUrl(command: Command): Command {
  return addToken(command.option('--service <url>', SERVICE));
}

/** Adds hidden options of a service to a command that works on the store only, so that it can explain why it refuses them. */
export function addRefusedServiceOptions(command: Command): Command {
  const hidden = ['--url, --service <url>', '--token <token>'].map((flags) => new Option(flags).hideHelp());
  for (const option of hidden) command.addOption(option);
  return command;
}

function addToken(command: Command): Command {
  return command.option('--token <token>', 'a token for it (also TRIVET_TOKEN); that of trivet login unless given');
}

export interface OperatorParts extends CliStoreOptions {
  readonly options: ServiceOptions;
  /** Implements the operations on the store. */
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
    readTimeMs: () => Promise.resolve(cli.world.nowMs()),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** For a command that works on the store only: throws when it would use a service. */
export async function refuseService(options: ServiceOptions, reason: string): Promise<void> {
  if ((await locateService(options)) !== undefined) throw new Failure('invalid', reason);
}

function callServiceOnly(service: Service): Operator {
  return {
    call: async (operation, input, file) =>
      (await callService(service, { operation, input: input as Record<string, unknown>, file })) as never,
    readTimeMs: () => readServiceTimeMs(service.url, realWorld),
    [Symbol.asyncDispose]: async () => {},
  };
}

/** Returns undefined when the command uses the store of this machine: it exists, or there is no login. */
async function findService(options: ServiceOptions): Promise<Service | undefined> {
  const { configFolder } = readUserEnvironment();
  const located = await locateService(options);
  if (located === undefined) return undefined;
  const { url, isNamed } = located;
  if (!isNamed) remark(`On ${url} (there is no store here)`);
  const token = options.token ?? readTokenFor(url);
  if (isNamed && token !== undefined) return { url, token };
  return { url, token: await readToken(configFolder, url) };
}

/** The token of the environment, valid for the service that the environment names; if it names none, for any service. */
function readTokenFor(url: string): string | undefined {
  const { url: ofEnvironment, token } = readUserEnvironment();
  if (token === undefined || ofEnvironment === undefined) return token;
  return isAddressOf(ofEnvironment, url) ? token : undefined;
}

/** An address to which no token may be sent, such as one within a cluster, counts as another service. */
function isAddressOf(text: string, url: string): boolean {
  try {
    return readServiceUrl(text) === url;
  } catch {
    return false;
  }
}

interface Located {
  readonly url: string;
  /** An option or the environment names the service; otherwise it is that of the last login. */
  readonly isNamed: boolean;
}

async function locateService({ service, token }: ServiceOptions): Promise<Located | undefined> {
  const { url: ofEnvironment, configFolder } = readUserEnvironment();
  const named = service ?? ofEnvironment;
  if (named !== undefined) return { url: readServiceUrl(named), isNamed: true };
  if (token !== undefined)
    throw new Failure('invalid', 'Cannot use --token without --service: say which service it is for');
  if (hasOwnStore()) return undefined;
  const { preferred: url } = await readLogins(configFolder);
  return url === undefined ? undefined : { url, isNamed: false };
}

function hasOwnStore(): boolean {
  const { store } = readConfig();
  return store.databaseUrl !== undefined || hasDatabase(store.dataDir);
}

async function readToken(configFolder: string | undefined, url: string): Promise<string> {
  const login = findLogin(await readLogins(configFolder), url);
  return isEnding(login, realWorld.nowMs()) ? await refreshToken(configFolder, url) : login.token;
}

/** Commands refresh one after the other, since a refresh token is valid once: a later command finds the tokens of the first one. */
async function refreshToken(configFolder: string | undefined, url: string): Promise<string> {
  using logins = await lockLogins(configFolder);
  const login = findLogin(await logins.read(), url);
  const nowMs = realWorld.nowMs();
  if (!isEnding(login, nowMs)) return login.token;
  const fresh = await refreshLogin(url, login, nowMs);
  await logins.update((stored) => withRefreshedLogin(stored, url, { before: login, after: fresh }));
  return fresh.token;
}

function findLogin({ hosts }: Logins, url: string): Login {
  const login = hosts[url];
  if (login !== undefined) return login;
  const reason = explainUnusedToken();
  throw new Failure(
    'unauthenticated',
    `No login for ${url}: ${reason}sign in with trivet login ${url}, or give --token`,
  );
}

/** Explains a token of the environment that is for another service: one for this service would have been used. */
function explainUnusedToken(): string {
  const { url, token } = readUserEnvironment();
  if (token === undefined || url === undefined) return '';
  return `TRIVET_TOKEN is for the service of TRIVET_URL (${url}), not for this one; `;
}
