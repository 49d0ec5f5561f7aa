/** `trivet hook`: webhooks of a repository. */
import { Command } from 'commander';
import { formatTable, print, printJson, remark } from '../../command-line/output.ts';
import { Failure } from '../../errors.ts';
import { EVENT_KINDS, FLAG_OF } from '../events/event-kind.ts';
import { type Hook, PROFILE_NAMES } from '../hooks/hook.ts';
import { readEndpointStatus, readPauses } from '../hooks/hook-status-store.ts';
import type { StoredHook } from '../hooks/hook-store.ts';
import { toHookJson } from '../management/hook-json.ts';
import {
  createHook,
  deleteHook,
  hookChangeParameters,
  newHookParameters,
  updateHook,
} from '../management/manage-hook.ts';
import { type Parameters, parseParameters } from '../parameters/parameters.ts';
import { addAllHooksCommands } from './hook-all.ts';
import { addDeliveryCommands } from './hook-deliveries.ts';
import { describePause } from './hook-pause.ts';
import {
  type CliWebhooks,
  findRepository,
  findWebhook,
  type OpenAllHooks,
  type OpenWebhooks,
} from './open-webhooks.ts';

export function createHookCommand(open: OpenWebhooks, openAll: OpenAllHooks): Command {
  const command = new Command('hook')
    .description('Create, list, change, test and delete webhooks, and see their deliveries')
    // The names leave less than the 40 columns above which Commander wraps descriptions.
    .configureHelp({ minWidthToWrap: 30 });
  command
    .command('create <owner/name>')
    .description('Create a webhook')
    .requiredOption('--url <url>', 'where deliveries go')
    .option('--password <text>', 'travels with each delivery (type 0), or signs it (type 1)')
    .option('--sign', 'use the password as a signature key (encryption_type 1)')
    .option('--events <kinds>', `any of ${EVENT_KINDS.join(', ')}, separated by commas`, 'push')
    .option('--profile <name>', `whose deliveries the receiver expects: ${PROFILE_NAMES.join(', ')}`, 'gitcode')
    .option('--json', 'print the webhook as JSON')
    .action(create.bind(undefined, open));
  command
    .command('list <owner/name>')
    .description('List the webhooks of a repository')
    .option('--json', 'one JSON object a line')
    .action(list.bind(undefined, open));
  command
    .command('show <owner/name> <id>')
    .description('Show a webhook: its settings without the password, its last answer, what waits and why')
    .option('--json', 'print the webhook as JSON, with the password')
    .action(show.bind(undefined, open));
  addChangeCommands(command, open);
  command.command('delete <owner/name> <id>').description('Delete a webhook').action(remove.bind(undefined, open));
  addDeliveryCommands(command, open);
  addAllHooksCommands(command, openAll);
  return command;
}

function addChangeCommands(command: Command, open: OpenWebhooks): void {
  command
    .command('update <owner/name> <id>')
    .description('Change a webhook; what is not named stays')
    .option('--url <url>', 'where deliveries go')
    .option('--password <text>', 'a new password or key; each former one goes on signing for a day')
    .option('--no-password', 'take the password away')
    .option('--sign', 'use the password as a signature key (encryption_type 1)')
    .option('--no-sign', 'let the password travel with each delivery (encryption_type 0)')
    .option('--events <kinds>', `these and no others of ${EVENT_KINDS.join(', ')}, separated by commas`)
    .option('--profile <name>', `whose deliveries the receiver expects: ${PROFILE_NAMES.join(', ')}`)
    .option('--json', 'print the webhook as JSON')
    .action(update.bind(undefined, open));
  command
    .command('enable <owner/name> <id>')
    .description('Switch a webhook on again, and send what was held')
    .action((text: string, id: string) => switchHook(open, text, id, true));
  command
    .command('disable <owner/name> <id>')
    .description('Switch a webhook off, and hold what happens from now on for it')
    .action((text: string, id: string) => switchHook(open, text, id, false));
}

interface CreateOptions {
  readonly url: string;
  readonly password?: string;
  readonly sign?: boolean;
  readonly events: string;
  readonly profile: string;
  readonly json?: boolean;
}

async function create(open: OpenWebhooks, text: string, options: CreateOptions): Promise<void> {
  await using webhooks = await open();
  const repository = await findRepository(webhooks, text);
  const given = {
    url: options.url,
    password: options.password,
    encryption_type: options.sign ? 1 : 0,
    profile: options.profile,
    ...readFlags(options.events, 'create'),
  };
  const parameters = parseParameters(newHookParameters, given, 'create the webhook');
  const stored = await createHook(webhooks.management, repository, parameters);
  if (options.json) printJson(await describe(webhooks, stored));
  else print(`Created webhook ${stored.hook.id} of ${text}`);
}

interface UpdateOptions {
  readonly url?: string;
  /** False: none from now on. */
  readonly password?: string | false;
  readonly sign?: boolean;
  readonly events?: string;
  readonly profile?: string;
  readonly json?: boolean;
}

async function update(open: OpenWebhooks, text: string, id: string, options: UpdateOptions): Promise<void> {
  const { url, password, sign, events, profile, json } = options;
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
  await using webhooks = await open();
  const updated = await change(webhooks, { text, id }, changes);
  if (json) printJson(await describe(webhooks, updated));
  else print(`Updated webhook ${updated.hook.id} of ${text}`);
}

async function switchHook(open: OpenWebhooks, text: string, id: string, active: boolean): Promise<void> {
  await using webhooks = await open();
  const { hook } = await change(webhooks, { text, id }, { active });
  print(`Webhook ${hook.id} of ${text} is ${active ? 'on' : 'off'}`);
}

async function change(
  webhooks: CliWebhooks,
  { text, id }: { readonly text: string; readonly id: string },
  changes: Parameters,
): Promise<StoredHook> {
  const { repository, stored } = await findWebhook(webhooks, text, id);
  const given = { url: stored.hook.url, ...changes };
  const parameters = parseParameters(hookChangeParameters, given, 'update the webhook');
  return await updateHook(webhooks.management, repository, stored, parameters);
}

function readFlags(kinds: string, action: 'create' | 'update') {
  const wanted = kinds.split(/[ ,]+/);
  const unknown = wanted.find((kind) => !(EVENT_KINDS as readonly string[]).includes(kind));
  if (unknown !== undefined)
    throw new Failure(
      'invalid',
      `Cannot ${action} the webhook: --events must be of ${EVENT_KINDS.join(', ')}, got "${unknown}"`,
    );
  return Object.fromEntries(EVENT_KINDS.map((kind) => [FLAG_OF[kind], wanted.includes(kind)]));
}

async function list(open: OpenWebhooks, text: string, { json }: { json?: boolean }): Promise<void> {
  await using webhooks = await open();
  const repository = await findRepository(webhooks, text);
  const hooks = await webhooks.management.hooks.list(repository.id, 1000, 0);
  if (json) {
    for (const stored of hooks) printJson(await describe(webhooks, stored));
    return;
  }
  const pauses = await readPauses(webhooks.cli.store, repository.id, webhooks.cli.world.nowMs());
  const rows = hooks.map(({ hook }) => [
    hook.id,
    hook.url,
    EVENT_KINDS.filter((kind) => hook.events[kind]).join(','),
    hook.encryptionType === 1 ? 'signature' : 'password',
    hook.profile,
    stateOf(hook, pauses.has(hook.id)),
    hook.resultCode,
    hook.result?.slice(0, 40).replaceAll('\n', ' '),
  ]);
  print(formatTable(['id', 'url', 'events', 'proof', 'profile', 'state', 'result_code', 'result'], rows));
}

function stateOf({ disabledAtMs }: Hook, isPaused: boolean): string {
  if (disabledAtMs !== null) return 'off';
  return isPaused ? 'paused' : 'on';
}

async function show(open: OpenWebhooks, text: string, id: string, { json }: { json?: boolean }): Promise<void> {
  await using webhooks = await open();
  const { stored } = await findWebhook(webhooks, text, id);
  if (json) return printJson(await describe(webhooks, stored));
  const { hook } = stored;
  const { store, world } = webhooks.cli;
  const [{ waiting }, pauses] = await Promise.all([
    readEndpointStatus(store, hook.id),
    readPauses(store, hook.repositoryId, world.nowMs()),
  ]);
  const pause = pauses.get(hook.id);
  const facts: [name: string, value: string | number | null][] = [
    ['id', hook.id],
    ['url', hook.url],
    ['events', EVENT_KINDS.filter((kind) => hook.events[kind]).join(', ')],
    ['proof', hook.encryptionType === 1 ? 'signature' : 'password'],
    ['profile', hook.profile],
    ['state', stateOf(hook, pause !== undefined)],
    ['disabled reason', hook.disabledReason],
    ['result code', hook.resultCode],
    ['result', hook.result?.slice(0, 200).replaceAll('\n', ' ') ?? null],
    ['waiting', waiting],
  ];
  print(formatTable(['field', 'value'], facts));
  if (pause !== undefined) remark(describePause(pause));
}

async function describe({ cli }: CliWebhooks, stored: StoredHook) {
  const nowMs = cli.world.nowMs();
  const pauses = await readPauses(cli.store, stored.hook.repositoryId, nowMs);
  return toHookJson(stored, { cipher: cli.cipher, nowMs, pause: pauses.get(stored.hook.id) });
}

async function remove(open: OpenWebhooks, text: string, id: string): Promise<void> {
  await using webhooks = await open();
  const { hook } = await findWebhook(webhooks, text, id);
  await deleteHook(webhooks.management, hook.id);
  print(`Deleted webhook ${hook.id} of ${text}`);
}
