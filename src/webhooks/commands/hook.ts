/** Runs `trivet hook`: creates, changes, enables and deletes webhooks of a repository. */
import { Command } from 'commander';
import { print, printJson, remark } from '../../command-line/output.ts';
import { Failure } from '../../errors.ts';
import { addHook, changeHook, disableHook, enableHook, removeHook } from '../administration/hook-operations.ts';
import { EVENT_KINDS, FLAG_OF } from '../events/event-kind.ts';
import { PROFILE_NAMES } from '../hooks/hook.ts';
import { hookSettingParameters, newHookParameters } from '../management/manage-hook.ts';
import { parseParameters } from '../parameters/parameters.ts';
import { addAllHooksCommands } from './hook-all.ts';
import { addHookCommand, addHookCommandWithUrl, type HookOptions } from './hook-command.ts';
import { addDeliveryCommands } from './hook-deliveries.ts';
import { addShowingCommands } from './hook-show.ts';
import { type OpenWebhooks, parseHookReference, parseRepositoryName } from './open-webhooks.ts';

export function createHookCommand(open: OpenWebhooks): Command {
  const command = new Command('hook')
    .description('Create, list, change, test and delete webhooks, and see their deliveries')
    // The names of subcommands leave fewer than 40 columns for descriptions, and Commander wraps none below that by default.
    .configureHelp({ minWidthToWrap: 20 });
  addCreation(command, open);
  addShowingCommands(command, open);
  addChangeCommands(command, open);
  addHookCommand(command, 'delete <owner/name> <id>', 'Delete a webhook').action(remove.bind(undefined, open));
  addDeliveryCommands(command, open);
  addAllHooksCommands(command, open);
  return command;
}

/** The store shows the password, as the console does to the owner; a service never does. */
const AS_JSON = 'print the webhook as JSON, on the store with its password';

function addCreation(command: Command, open: OpenWebhooks): void {
  addHookCommandWithUrl(command, 'create <owner/name>', 'Create a webhook', AS_JSON)
    .requiredOption('--url <url>', 'where deliveries go')
    .option('--password <text>', 'travels with each delivery (encryption_type 0)')
    .option('--secret <text>', 'signs each delivery, and stays here (encryption_type 1)')
    .option('--sign', 'use --password as --secret')
    .option('--events <kinds>', `any of ${EVENT_KINDS.join(', ')}, separated by commas`, 'push')
    .option('--profile <name>', `whose deliveries the receiver expects: ${PROFILE_NAMES.join(', ')}`, 'gitcode')
    .action(create.bind(undefined, open));
}

function addChangeCommands(command: Command, open: OpenWebhooks): void {
  const change = 'Change a webhook; what is not named stays';
  addHookCommandWithUrl(command, 'update <owner/name> <id>', change, AS_JSON)
    .option('--url <url>', 'where deliveries go')
    .option('--password <text>', 'a new password, or a new key where it signs')
    .option('--secret <text>', 'a new key, which signs each delivery (encryption_type 1); former keys sign for a day')
    .option('--no-password, --no-secret', 'take the password or the key away; of this and a new one, the last counts')
    .option('--sign', 'use the password as a signature key (encryption_type 1)')
    .option('--no-sign', 'let the password travel with each delivery (encryption_type 0)')
    .option('--events <kinds>', `these and no others of ${EVENT_KINDS.join(', ')}, separated by commas`)
    .option('--profile <name>', `whose deliveries the receiver expects: ${PROFILE_NAMES.join(', ')}`)
    // --no-secret is an alias of --no-password: of several such options, the last one counts.
    .on('option:password', function (this: Command) {
      if (this.getOptionValue('secret') === false) this.setOptionValue('secret', undefined);
    })
    .on('option:no-secret', function (this: Command) {
      this.setOptionValue('password', undefined);
    })
    .action(update.bind(undefined, open));
  for (const [name, operation, description, state] of [
    ['enable', enableHook, 'Switch a webhook on again, and send what was held', 'on'],
    ['disable', disableHook, 'Switch a webhook off, and hold what happens from now on for it', 'off'],
  ] as const)
    addHookCommand(command, `${name} <owner/name> <id>`, description, AS_JSON).action(
      async (text: string, id: string, options: HookOptions) => {
        const reference = parseHookReference(text, id);
        await using operator = await open(options);
        const hook = await operator.call(operation, reference);
        if (options.json) printJson(hook);
        else print(`Webhook ${hook.id} of ${text} is ${state}`);
      },
    );
}

interface CreateOptions extends HookOptions {
  readonly url: string;
  readonly password?: string;
  readonly secret?: string;
  readonly sign?: boolean;
  readonly events: string;
  readonly profile: string;
}

async function create(open: OpenWebhooks, repository: string, options: CreateOptions, command: Command): Promise<void> {
  parseRepositoryName(repository);
  const { password, sign } = readProof(options, 'create');
  if (sign && !password)
    throw new Failure('invalid', 'Cannot create the webhook: --sign needs --password, the key of the signature');
  const given = {
    url: options.url,
    password,
    encryption_type: sign ? 1 : 0,
    profile: options.profile,
    ...readFlags(options.events, 'create'),
  };
  const parameters = parseParameters(newHookParameters, given, 'create the webhook');
  await using operator = await open(options);
  const hook = await operator.call(addHook, { repository, ...parameters });
  if (options.json) printJson(hook);
  else print(`Created webhook ${hook.id} of ${repository}`);
  if (command.getOptionValueSource('events') === 'default')
    remark(`It gets ${options.events} events alone: --events names others`);
  if (!password) remark('Its receiver cannot verify the sender: --secret KEY signs each delivery');
}

interface UpdateOptions extends HookOptions, Proof {
  readonly url?: string;
  /** False: the key is removed. */
  readonly secret?: string | false;
  readonly events?: string;
  readonly profile?: string;
}

async function update(open: OpenWebhooks, text: string, id: string, options: UpdateOptions): Promise<void> {
  const reference = parseHookReference(text, id);
  const changes = parseParameters(hookSettingParameters, listChanges(options), 'update the webhook');
  await using operator = await open(options);
  const hook = await operator.call(changeHook, { ...reference, ...changes });
  if (options.json) printJson(hook);
  else print(`Updated webhook ${hook.id} of ${text}`);
}

function listChanges({ url, events, profile, ...options }: UpdateOptions) {
  const { password, sign } = readProof(options, 'update');
  const changes = {
    ...(url !== undefined && { url }),
    ...(password === false ? { remove_password: true } : password !== undefined && { password }),
    ...(sign !== undefined && { encryption_type: sign ? 1 : 0 }),
    ...(events !== undefined && readFlags(events, 'update')),
    ...(profile !== undefined && { profile }),
  };
  if (password === '')
    throw new Failure(
      'invalid',
      'Cannot update the webhook: --password must not be empty, --no-password takes it away',
    );
  if (Object.keys(changes).length === 0)
    throw new Failure('invalid', 'Cannot update the webhook: nothing to change is named, see --help');
  return changes;
}

interface Proof {
  /** False: the password is removed. */
  readonly password?: string | false | undefined;
  readonly sign?: boolean | undefined;
}

/** `--secret KEY` means `--password KEY --sign`. */
function readProof({ password, secret, sign }: Proof & Pick<UpdateOptions, 'secret'>, action: Action): Proof {
  if (secret === undefined) return { password, sign };
  if (secret === false) return { password: false, sign };
  if (secret === '') throw new Failure('invalid', `Cannot ${action} the webhook: --secret must not be empty`);
  if (password === undefined && sign !== false) return { password: secret, sign: true };
  const other = password === undefined ? '--no-sign' : '--password';
  throw new Failure('invalid', `Cannot ${action} the webhook: --secret and ${other} must not be used together`);
}

type Action = 'create' | 'update';

function readFlags(kinds: string, action: Action) {
  const wanted = kinds.split(/[ ,]+/);
  const unknown = wanted.find((kind) => !(EVENT_KINDS as readonly string[]).includes(kind));
  if (unknown !== undefined)
    throw new Failure(
      'invalid',
      `Cannot ${action} the webhook: --events must be of ${EVENT_KINDS.join(', ')}, got "${unknown}"`,
    );
  return Object.fromEntries(EVENT_KINDS.map((kind) => [FLAG_OF[kind], wanted.includes(kind)]));
}

async function remove(open: OpenWebhooks, text: string, id: string, options: HookOptions): Promise<void> {
  const reference = parseHookReference(text, id);
  await using operator = await open(options);
  const removed = await operator.call(removeHook, reference);
  if (options.json) printJson(removed);
  else print(`Deleted webhook ${removed.id} of ${text}`);
}
