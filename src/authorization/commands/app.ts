/** `trivet app`: OAuth applications, for operators. Works whether the service is up or down. */
import { Command, Option } from 'commander';
import { type CliStore, openCliStore } from '../../command-line/open-cli-store.ts';
import { formatTable, print, printJson, remark } from '../../command-line/output.ts';
import { wholeNumber } from '../../command-line/whole-number.ts';
import type { Store } from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import { findUserByLogin } from '../accounts/user-store.ts';
import {
  addSecret,
  createApplication,
  deleteApplication,
  removeSecret,
  setApplicationDisabled,
} from '../applications/application.ts';
import { listSecrets } from '../applications/application-secret-store.ts';
import {
  type Application,
  findApplication,
  type GrantType,
  listAllApplications,
  setIntrospectionStatement,
} from '../applications/application-store.ts';

const GRANT_TYPES: readonly GrantType[] = ['authorization_code', 'refresh_token', 'client_credentials', 'device_code'];
const DEFAULT_GRANTS: readonly GrantType[] = ['authorization_code', 'refresh_token'];
/** In the audit log, what was done here has no person as its actor. */
const BY_HAND = { userId: undefined };

export function createAppCommand(): Command {
  const command = new Command('app').description('Register, list and change OAuth applications');
  command
    .command('create')
    .description('Register an application; prints its client id and, once, its secret')
    .requiredOption('--name <name>', 'what the consent page calls it')
    .option('--redirect-uri <uri...>', 'where an answer may go; exact, but for the port of a loopback IP')
    .option('--homepage <url>', 'its home page')
    .option('--owner <login>', 'who may change it on the pages; without it, only commands can')
    .option('--public', 'a native or browser application: no secret, PKCE instead')
    .addOption(
      new Option('--grant <type...>', `any of ${GRANT_TYPES.join(', ')}`).default(
        DEFAULT_GRANTS,
        DEFAULT_GRANTS.join(' '),
      ),
    )
    .option('--authenticated-refresh', 'refuse a refresh without client authentication')
    .option('--may-introspect', 'a resource server: may ask about every token')
    .option('--json', 'one JSON object')
    .action(create);
  command.command('list').description('List the applications').option('--json', 'one JSON object a line').action(list);
  command
    .command('show <client-id>')
    .description('Show an application, and when its secrets were made and used')
    .action(show);
  command
    .command('add-secret <client-id>')
    .description('Add a second secret, to replace the first without downtime; prints it once')
    .action(addOne);
  command
    .command('remove-secret')
    .argument('<client-id>', 'whose secret')
    .argument('<slot>', '1 or 2, as show has it', wholeNumber(1, 2))
    .description('Remove one of two secrets')
    .action(removeOne);
  command
    .command('disable <client-id>')
    .description('Stop it and all its tokens, until it is enabled')
    .action((clientId: string) => setDisabled(clientId, true));
  command
    .command('enable <client-id>')
    .description('Let a disabled one work again')
    .action((clientId: string) => setDisabled(clientId, false));
  command.command('delete <client-id>').description('Delete it and every token it holds').action(remove);
  return command;
}

interface CreateOptions {
  readonly name: string;
  readonly redirectUri?: readonly string[];
  readonly homepage?: string;
  readonly owner?: string;
  readonly public?: true;
  readonly grant: readonly string[];
  readonly authenticatedRefresh?: true;
  readonly mayIntrospect?: true;
  readonly json?: true;
}

async function create(options: CreateOptions): Promise<void> {
  const grantTypes = checkGrants(options.grant);
  await using cli = await openCliStore({ ifAbsent: 'create' });
  const ownerId = options.owner === undefined ? undefined : await findUserId(cli.store, options.owner);
  const { application, clientSecret } = await createApplication(cli.store, cli.world, {
    form: {
      name: options.name,
      homepage: options.homepage ?? '',
      description: '',
      redirectUris: options.redirectUri ?? [],
      isPublic: options.public === true,
      grantTypes,
      authenticatedRefresh: options.authenticatedRefresh === true,
    },
    actor: { userId: ownerId },
  });
  const { clientId } = application;
  if (options.mayIntrospect) await cli.store.writeAll([setIntrospectionStatement(clientId, 1)]);
  if (options.json) {
    printJson({ client_id: clientId, client_secret: clientSecret });
    return;
  }
  print(`client_id      ${clientId}`);
  if (clientSecret === undefined) return;
  print(`client_secret  ${clientSecret}`);
  remark('The secret is shown this once.');
}

function checkGrants(names: readonly string[]): GrantType[] {
  const unknown = names.find((name) => !(GRANT_TYPES as readonly string[]).includes(name));
  if (unknown === undefined) return names as GrantType[];
  throw new Failure('invalid', `Cannot register: --grant must be one of ${GRANT_TYPES.join(', ')}, got "${unknown}"`);
}

async function findUserId(store: Store, login: string): Promise<string> {
  const user = await findUserByLogin(store, login);
  if (user === undefined)
    throw new Failure('not_found', `Cannot register: there is no person with the login "${login}"`);
  return user.id;
}

const PAGE_SIZE = 200;

async function list({ json }: { readonly json?: true }): Promise<void> {
  await using cli = await openCliStore();
  const applications: Application[] = [];
  for (;;) {
    const page = await listAllApplications(cli.store, PAGE_SIZE, applications.at(-1)?.clientId);
    applications.push(...page);
    if (page.length < PAGE_SIZE) break;
  }
  if (json) {
    for (const application of applications) printJson(application);
    return;
  }
  const rows = applications.map((application) => [
    application.clientId,
    application.name,
    application.isPublic ? 'public' : 'confidential',
    application.disabledAtMs === undefined ? 'live' : 'disabled',
    application.redirectUris.join(' '),
  ]);
  print(formatTable(['client id', 'name', 'kind', 'state', 'redirect URIs'], rows));
}

async function show(clientId: string): Promise<void> {
  await using cli = await openCliStore();
  const application = await requireApplication(cli, clientId);
  printJson({ ...application, secrets: await listSecrets(cli.store, clientId) });
}

async function addOne(clientId: string): Promise<void> {
  await using cli = await openCliStore();
  const application = await requireApplication(cli, clientId);
  print(await addSecret(cli.store, cli.world, { application, actor: BY_HAND }));
}

async function removeOne(clientId: string, slot: number): Promise<void> {
  await using cli = await openCliStore();
  const application = await requireApplication(cli, clientId);
  await removeSecret(cli.store, cli.world, { application, slot, actor: BY_HAND });
  print('Removed');
}

async function setDisabled(clientId: string, isDisabled: boolean): Promise<void> {
  await using cli = await openCliStore();
  const application = await requireApplication(cli, clientId);
  await setApplicationDisabled(cli.store, cli.world, { application, isDisabled, actor: BY_HAND });
  print(isDisabled ? 'Disabled' : 'Enabled');
}

async function remove(clientId: string): Promise<void> {
  await using cli = await openCliStore();
  const application = await requireApplication(cli, clientId);
  await deleteApplication(cli.store, cli.world, { application, actor: BY_HAND });
  print('Deleted');
}

async function requireApplication({ store }: CliStore, clientId: string): Promise<Application> {
  const application = await findApplication(store, clientId);
  if (application !== undefined) return application;
  throw new Failure('not_found', `Cannot find an application with the client id "${clientId}"`);
}
