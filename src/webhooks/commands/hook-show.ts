/** Prints webhooks with their status, of one repository or of all. */
import type { Command } from 'commander';
import { type Cell, formatTable, print, printJson, printTable, remark } from '../../command-line/output.ts';
import type { Operator } from '../../operations/call-on-store.ts';
import type { InputOf, OutputOf } from '../../operations/operation.ts';
import { type AnyHook, listHooks, showHook } from '../administration/hook-operations.ts';
import { EVENT_KINDS, FLAG_OF } from '../events/event-kind.ts';
import { addHookCommand, type HookOptions } from './hook-command.ts';
import { describePause } from './hook-pause.ts';
import { type OpenWebhooks, parseHookReference, parseRepositoryName } from './open-webhooks.ts';

export function addShowingCommands(command: Command, open: OpenWebhooks): void {
  addHookCommand(
    command,
    'list <owner/name>',
    'List the webhooks of a repository',
    'one JSON object a line, on the store with passwords',
  ).action(list.bind(undefined, open));
  addHookCommand(
    command,
    'show <owner/name> <id>',
    'Show a webhook: its settings without the password, its last answer, what waits and why',
    'print the webhook as JSON, on the store with the password',
  ).action(show.bind(undefined, open));
}

async function list(open: OpenWebhooks, repository: string, options: HookOptions): Promise<void> {
  parseRepositoryName(repository);
  await using operator = await open(options);
  const hooks = await readHooks(operator, { repository });
  if (options.json) {
    for (const hook of hooks) printJson(hook);
    return;
  }
  const rows = hooks.map((hook) => [
    hook.id,
    hook.url,
    kindsOf(hook).join(','),
    proofOf(hook),
    hook.profile,
    stateOf(hook),
    hook.result_code,
    hook.result?.slice(0, 40).replaceAll('\n', ' '),
  ]);
  printTable(['id', 'url', 'events', 'proof', 'profile', 'state', 'result_code', 'result'], rows, 'No webhook');
}

type Page = OutputOf<typeof listHooks>;

/** Reads the webhooks of all pages. */
export async function readHooks(
  operator: Operator,
  filter: Pick<InputOf<typeof listHooks>, 'repository' | 'state'>,
): Promise<AnyHook[]> {
  const hooks: AnyHook[] = [];
  for (let after: number | null = 0; after !== null; ) {
    const page: Page = await operator.call(listHooks, { ...filter, after, limit: 200 });
    hooks.push(...page.hooks);
    after = page.next;
  }
  return hooks;
}

async function show(open: OpenWebhooks, text: string, id: string, options: HookOptions): Promise<void> {
  const reference = parseHookReference(text, id);
  await using operator = await open(options);
  const hook = await operator.call(showHook, reference);
  if (options.json) return printJson(hook);
  printFacts([
    ['id', hook.id],
    ['url', hook.url],
    ['events', kindsOf(hook).join(', ')],
    ['proof', proofOf(hook)],
    ['profile', hook.profile],
    ['state', stateOf(hook)],
    ['disabled reason', hook.disabled_reason],
    ['result code', hook.result_code],
    ['result', hook.result?.slice(0, 200).replaceAll('\n', ' ') ?? null],
    ['failing since', hook.failing_since],
    ['failed attempts', hook.failing_since === null ? null : hook.failed_attempts],
    ['waiting', hook.waiting],
  ]);
  remarkPause(hook);
}

export function printFacts(facts: readonly (readonly [name: string, value: Cell])[]): void {
  print(formatTable(['field', 'value'], facts));
}

export function remarkPause(hook: AnyHook): void {
  const pause = describePause(hook);
  if (pause !== undefined) remark(pause);
}

export function kindsOf(hook: AnyHook): string[] {
  return EVENT_KINDS.filter((kind) => hook[FLAG_OF[kind]]);
}

function proofOf({ encryption_type }: AnyHook): string {
  return encryption_type === 1 ? 'signature' : 'password';
}

export function stateOf({ active, paused_since }: AnyHook): string {
  if (!active) return 'off';
  return paused_since === null ? 'on' : 'paused';
}
