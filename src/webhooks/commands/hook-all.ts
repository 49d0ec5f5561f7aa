/** Runs `trivet hook all`: webhooks of all repositories by their id alone. */
import { type Command, Option } from 'commander';
import { addServiceOptions } from '../../command-line/open-operator.ts';
import { formatTable, print, printJson, remark } from '../../command-line/output.ts';
import { disableHook, enableHook, showHook } from '../administration/hook-operations.ts';
import type { HookOptions } from './hook-command.ts';
import { kindsOf, printFacts, readHooks, stateOf } from './hook-show.ts';
import { type OpenWebhooks, parseId } from './open-webhooks.ts';

/** An operator who switches a webhook off does not need its password. */
const WITHOUT_PASSWORDS = { passwords: 'hidden' } as const;

export function addAllHooksCommands(command: Command, open: OpenWebhooks): void {
  const all = command.command('all').description('Webhooks of all repositories, without their passwords');
  addServiceOptions(all.command('list'))
    .description('List the webhooks of all repositories')
    .option('--repo, --repository <owner/name>', 'only of this one')
    .addOption(
      new Option('--state <state>', 'only those that are on or off').choices(['on', 'off', 'any']).default('any'),
    )
    .option('--json', 'one JSON object a line')
    .action(list.bind(undefined, open));
  addServiceOptions(all.command('show <id>'))
    .description('Show a webhook')
    .option('--json', 'print JSON')
    .action(show.bind(undefined, open));
  for (const [name, operation, description, state] of [
    ['enable', enableHook, 'Switch a webhook on again, and send what was held', 'on'],
    ['disable', disableHook, 'Switch a webhook off, and hold what happens from now on for it', 'off'],
  ] as const)
    addServiceOptions(all.command(`${name} <id>`))
      .description(description)
      .option('--json', 'print JSON')
      .action(async (id: string, options: HookOptions) => {
        await using operator = await open(options, WITHOUT_PASSWORDS);
        const hook = await operator.call(operation, { id: parseId(id) });
        if (options.json) printJson(hook);
        else print(`Webhook ${hook.id} of ${hook.repository} is ${state}`);
      });
}

interface ListOptions extends HookOptions {
  readonly repository?: string;
  readonly state: 'on' | 'off' | 'any';
}

async function list(open: OpenWebhooks, { repository, state, ...options }: ListOptions): Promise<void> {
  await using operator = await open(options, WITHOUT_PASSWORDS);
  const hooks = await readHooks(operator, { repository, state });
  if (options.json) {
    for (const hook of hooks) printJson(hook);
    return;
  }
  if (hooks.length === 0) return remark('No webhook');
  const rows = hooks.map((hook) => [
    hook.id,
    hook.repository,
    hook.url,
    kindsOf(hook).join(', '),
    stateOf(hook),
    hook.result_code,
  ]);
  print(formatTable(['id', 'repository', 'url', 'events', 'state', 'result_code'], rows));
}

async function show(open: OpenWebhooks, id: string, options: HookOptions): Promise<void> {
  await using operator = await open(options, WITHOUT_PASSWORDS);
  const hook = await operator.call(showHook, { id: parseId(id) });
  if (options.json) return printJson(hook);
  printFacts([
    ['id', hook.id],
    ['repository', hook.repository],
    ['url', hook.url],
    ['events', kindsOf(hook).join(', ')],
    ['profile', hook.profile],
    ['state', stateOf(hook)],
    ['disabled reason', hook.disabled_reason],
    ['result code', hook.result_code],
    ['result', hook.result?.slice(0, 200) ?? null],
  ]);
}
