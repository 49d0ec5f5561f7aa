/** Runs `trivet app`: OAuth applications, on the store or at a running service. */
import { Command, Option } from 'commander';
import { print, printJson, printTable, remark } from '../../command-line/output.ts';
import { CLIENT_ID } from '../../command-line/refresh-login.ts';
import { wholeNumber } from '../../command-line/whole-number.ts';
import { Failure } from '../../errors.ts';
import type { OutputOf } from '../../operations/operation.ts';
import {
  type AnyApplication,
  addApplication,
  addApplicationSecret,
  disableApplication,
  enableApplication,
  listApplications,
  removeApplication,
  removeApplicationSecret,
  showApplication,
} from '../administration/application-operations.ts';
import { DEFAULT_GRANTS } from '../applications/application-form.ts';
import { GRANT_TYPES, type GrantType } from '../applications/application-store.ts';
import { type AnswerOptions, addAnswerOptions, openAdministration } from './open-administration.ts';

export function createAppCommand(): Command {
  const command = new Command('app')
    .description('Register, list and change OAuth applications')
    // The command names leave fewer columns than the 40 that Commander needs by default to wrap descriptions.
    .configureHelp({ minWidthToWrap: 20 });
  const add = (words: string, description: string, json?: string) =>
    addAnswerOptions(command.command(words).description(description), json);
  addCreation(add);
  add('list', 'List the applications', 'one JSON object a line').action(list);
  add('show <client-id>', 'Show an application, and when its secrets were made and used, as JSON').action(show);
  add('add-secret <client-id>', 'Add a second secret, to replace the first without downtime; prints it once').action(
    addSecret,
  );
  addAnswerOptions(command.command('remove-secret').description('Remove one of two secrets'))
    .argument('<client-id>', 'whose secret')
    .argument('<slot>', '1 or 2, as "trivet app show" lists it', wholeNumber(1, 2))
    .action(removeSecret);
  for (const [words, operation, description, done] of [
    ['disable', disableApplication, 'Stop an application and all its tokens until it is enabled', 'Disabled'],
    ['enable', enableApplication, 'Enable a disabled application', 'Enabled'],
    ['delete', removeApplication, 'Delete an application and all its tokens', 'Deleted'],
  ] as const)
    add(`${words} <client-id>`, description).action(async (clientId: string, options: AnswerOptions) => {
      await using operator = await openAdministration(options);
      const changed = await operator.call(operation, { clientId });
      if (options.json) printJson(changed);
      else print(done);
      if (operation === removeApplication && clientId === CLIENT_ID)
        remark(`The next start of the service registers it again. To keep it out: trivet app disable ${CLIENT_ID}`);
    });
  return command;
}

function addCreation(add: (words: string, description: string) => Command): void {
  add('create', 'Register an application; prints its client id and, once, its secret')
    .requiredOption('--name <name>', 'its name on the consent page')
    .option('--redirect-uri <uri...>', 'redirect URI, compared exactly; on a loopback IP any port matches')
    .option('--homepage <url>', 'its home page')
    .option('--owner <login>', 'person who may change it on the pages; without it, only commands can')
    .option('--public', 'a native or browser application: no secret, PKCE instead')
    .addOption(
      new Option('--grant <type...>', `any of ${GRANT_TYPES.join(', ')}`).default(
        DEFAULT_GRANTS,
        DEFAULT_GRANTS.join(' '),
      ),
    )
    .option('--authenticated-refresh', 'refuse a refresh without client authentication')
    .option('--may-introspect', 'a resource server: may introspect every token')
    .action(create);
}

interface CreateOptions extends AnswerOptions {
  readonly name: string;
  readonly redirectUri?: string[];
  readonly homepage?: string;
  readonly owner?: string;
  readonly public?: true;
  readonly grant: readonly string[];
  readonly authenticatedRefresh?: true;
  readonly mayIntrospect?: true;
}

async function create(options: CreateOptions): Promise<void> {
  const { name, owner, homepage, redirectUri, authenticatedRefresh, mayIntrospect } = options;
  const grantTypes = checkGrants(options.grant);
  await using operator = await openAdministration(options, { ifAbsent: 'create' });
  const made = await operator.call(addApplication, {
    name,
    owner,
    homepage,
    redirectUris: redirectUri,
    isPublic: options.public === true,
    grantTypes,
    authenticatedRefresh: authenticatedRefresh === true,
    mayIntrospect: mayIntrospect === true,
  });
  if (options.json) return printJson(made);
  print(`client_id      ${made.client_id}`);
  if (made.client_secret === undefined) return;
  print(`client_secret  ${made.client_secret}`);
  remark('The secret is shown only this once.');
}

function checkGrants(names: readonly string[]): GrantType[] {
  const unknown = names.find((name) => !(GRANT_TYPES as readonly string[]).includes(name));
  if (unknown === undefined) return names as GrantType[];
  throw new Failure('invalid', `Cannot register: --grant must be one of ${GRANT_TYPES.join(', ')}, got "${unknown}"`);
}

type Page = OutputOf<typeof listApplications>;

async function list(options: AnswerOptions): Promise<void> {
  await using operator = await openAdministration(options);
  const applications: AnyApplication[] = [];
  for (let after: string | null = ''; after !== null; ) {
    const page: Page = await operator.call(listApplications, { after, limit: 200 });
    applications.push(...page.applications);
    after = page.next;
  }
  if (options.json) {
    for (const application of applications) printJson(application);
    return;
  }
  const rows = applications.map((application) => [
    application.clientId,
    application.name,
    application.isPublic ? 'public' : 'confidential',
    application.disabledAtMs === undefined ? 'live' : 'disabled',
    application.owner ?? application.ownerId,
    application.redirectUris.join(' '),
  ]);
  printTable(['client id', 'name', 'kind', 'state', 'owner', 'redirect URIs'], rows, 'No application');
}

/** Prints JSON with and without --json: an application does not fit a table. */
async function show(clientId: string, options: AnswerOptions): Promise<void> {
  await using operator = await openAdministration(options);
  printJson(await operator.call(showApplication, { clientId }));
}

async function addSecret(clientId: string, options: AnswerOptions): Promise<void> {
  await using operator = await openAdministration(options);
  const added = await operator.call(addApplicationSecret, { clientId });
  if (options.json) printJson(added);
  else print(added.client_secret);
}

async function removeSecret(clientId: string, slot: number, options: AnswerOptions): Promise<void> {
  await using operator = await openAdministration(options);
  const removed = await operator.call(removeApplicationSecret, { clientId, slot });
  if (options.json) printJson(removed);
  else print('Removed');
}
