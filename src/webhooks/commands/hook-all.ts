/** `trivet hook list`, `show`, `enable` and `disable`: also at a running service, for administrators. */
import { type Command, Option } from 'commander';
import { addServiceOptions, type ServiceOptions } from '../../command-line/open-operator.ts';
import { formatTable, print, printJson, remark } from '../../command-line/output.ts';
import type { OutputOf } from '../../operations/operation.ts';
import { type AnyHook, disableHook, enableHook, listHooks, showHook } from '../administration/hook-operations.ts';
import { EVENT_KINDS, FLAG_OF } from '../events/event-kind.ts';
import { type OpenAllHooks, parseId } from './open-webhooks.ts';

interface Options extends ServiceOptions {
  readonly json?: boolean;
}

export function addAllHooksCommands(command: Command, open: OpenAllHooks): void {
  const all = command.command('all').description('Webhooks of all repositories, here or at a running service');
  addServiceOptions(all.command('list'))
    .description('List the webhooks of all repositories')
    .option('--repository <owner/name>', 'only of this one')
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
      .action(async (id: string, options: Options) => {
        await using operator = await open(options);
        const hook = await operator.call(operation, { id: parseId(id) });
        if (options.json) printJson(hook);
        else print(`Webhook ${hook.id} of ${hook.repository} is ${state}`);
      });
}

interface ListOptions extends Options {
  readonly repository?: string;
  readonly state: 'on' | 'off' | 'any';
}

type Page = OutputOf<typeof listHooks>;

async function list(open: OpenAllHooks, { repository, state, ...options }: ListOptions): Promise<void> {
  await using operator = await open(options);
  const hooks: AnyHook[] = [];
  for (let after: number | null = 0; after !== null; ) {
    const page: Page = await operator.call(listHooks, { repository, state, after, limit: 200 });
    hooks.push(...page.hooks);
    after = page.next;
  }
  if (options.json) {
    for (const hook of hooks) printJson(hook);
    return;
  }
  if (hooks.length === 0) return remark('No webhook');
  const rows = hooks.map((hook) => [
    hook.id,
    hook.repository,
    hook.url,
    kindsOf(hook),
    stateOf(hook),
    hook.result_code,
  ]);
  print(formatTable(['id', 'repository', 'url', 'events', 'state', 'result_code'], rows));
}

async function show(open: OpenAllHooks, id: string, options: Options): Promise<void> {
  await using operator = await open(options);
  const hook = await operator.call(showHook, { id: parseId(id) });
  if (options.json) return printJson(hook);
  const facts: [name: string, value: string | number | null][] = [
    ['id', hook.id],
    ['repository', hook.repository],
    ['url', hook.url],
    ['events', kindsOf(hook)],
    ['profile', hook.profile],
    ['state', stateOf(hook)],
    ['disabled reason', hook.disabled_reason],
    ['result code', hook.result_code],
    ['result', hook.result?.slice(0, 200) ?? null],
  ];
  print(formatTable(['field', 'value'], facts));
}

function kindsOf(hook: AnyHook): string {
  return EVENT_KINDS.filter((kind) => hook[FLAG_OF[kind]]).join(', ');
}

function stateOf({ active, paused_since }: AnyHook): string {
  if (!active) return 'off';
  return paused_since === null ? 'on' : 'paused';
}
