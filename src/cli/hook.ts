/** `trivet hook`: webhooks of a repository, and what became of their deliveries. */
import { Command } from 'commander';
import { Failure } from '../errors.ts';
import { createMetrics } from '../telemetry/metrics.ts';
import { announceTest } from '../webhooks/announce.ts';
import { toAttemptJson, toDeliveryJson } from '../webhooks/delivery-json.ts';
import { findDelivery, isHeld, listDeliveries } from '../webhooks/delivery-log-store.ts';
import { cancelEndpointStep } from '../webhooks/delivery-store.ts';
import { createDeliveryWorker, type DeliveryWorker } from '../webhooks/delivery-worker.ts';
import { EVENT_KINDS, type EventKind, FLAG_OF } from '../webhooks/event-kind.ts';
import { PROFILE_NAMES } from '../webhooks/hook.ts';
import { toHookJson } from '../webhooks/hook-json.ts';
import type { StoredHook } from '../webhooks/hook-store.ts';
import { createHook, findHook, newHookParameters } from '../webhooks/manage-hook.ts';
import { parseParameters } from '../webhooks/parameters.ts';
import { createSampleEvent } from '../webhooks/sample-event.ts';
import { type CliWebhooks, findRepository, openWebhooks } from './open-webhooks.ts';
import { formatTable, print, printJson, remark } from './output.ts';
import { wholeNumber } from './whole-number.ts';

const TEST_DEADLINE_MS = 10_000;

export function createHookCommand(): Command {
  const command = new Command('hook').description('Create, list, test and delete webhooks, and see their deliveries');
  command
    .command('create <owner/name>')
    .description('Create a webhook')
    .requiredOption('--url <url>', 'where deliveries go')
    .option('--password <text>', 'travels with each delivery (type 0), or signs it (type 1)')
    .option('--sign', 'use the password as a signature key (encryption_type 1)')
    .option('--events <kinds>', `any of ${EVENT_KINDS.join(', ')}, separated by commas`, 'push')
    .option('--profile <name>', `whose deliveries the receiver expects: ${PROFILE_NAMES.join(', ')}`, 'gitcode')
    .option('--json', 'print the webhook as JSON')
    .action(create);
  command
    .command('list <owner/name>')
    .description('List the webhooks of a repository')
    .option('--json', 'one JSON object a line')
    .action(list);
  command
    .command('test <owner/name> <id>')
    .description('Send a test delivery now, and say how it went; exits with 1 when it was not accepted')
    .action(test);
  command.command('delete <owner/name> <id>').description('Delete a webhook').action(remove);
  addDeliveryCommands(command);
  return command;
}

function addDeliveryCommands(command: Command): void {
  command
    .command('deliveries <owner/name> <id>')
    .description('Show the newest deliveries of a webhook, or one with every attempt')
    .option('--delivery <id>', 'this one')
    .option('--limit <number>', 'how many', wholeNumber(1, 10_000), 20)
    .option('--json', 'one JSON object a line')
    .action(showDeliveries);
  command
    .command('redeliver <owner/name> <id> <delivery-id>')
    .description('Send a delivery again; the service does it, when it is up')
    .action(sendAgain);
}

interface CreateOptions {
  readonly url: string;
  readonly password?: string;
  readonly sign?: boolean;
  readonly events: string;
  readonly profile: string;
  readonly json?: boolean;
}

async function create(text: string, options: CreateOptions): Promise<void> {
  await using webhooks = await openWebhooks();
  const repository = await findRepository(webhooks, text);
  const wanted = options.events.split(/[ ,]+/).map(parseKind);
  const flags = EVENT_KINDS.map((kind) => [FLAG_OF[kind], wanted.includes(kind)]);
  const given = {
    url: options.url,
    password: options.password,
    encryption_type: options.sign ? 1 : 0,
    profile: options.profile,
    ...Object.fromEntries(flags),
  };
  const parameters = parseParameters(newHookParameters, given, 'create the webhook');
  const stored = await createHook(webhooks.management, repository, parameters);
  if (options.json) printJson(describe(webhooks, stored));
  else print(`Created webhook ${stored.hook.id} of ${text}`);
}

function parseKind(text: string): EventKind {
  const kind = EVENT_KINDS.find((candidate) => candidate === text);
  if (kind !== undefined) return kind;
  throw new Failure(
    'invalid',
    `Cannot create the webhook: --events must be of ${EVENT_KINDS.join(', ')}, got "${text}"`,
  );
}

async function list(text: string, { json }: { json?: boolean }): Promise<void> {
  await using webhooks = await openWebhooks();
  const repository = await findRepository(webhooks, text);
  const hooks = await webhooks.management.hooks.list(repository.id, 1000, 0);
  if (json) {
    for (const stored of hooks) printJson(describe(webhooks, stored));
    return;
  }
  const rows = hooks.map(({ hook }) => [
    hook.id,
    hook.url,
    EVENT_KINDS.filter((kind) => hook.events[kind]).join(','),
    hook.encryptionType === 1 ? 'signature' : 'password',
    hook.profile,
    hook.disabledAtMs === null ? 'on' : 'off',
    hook.resultCode,
    hook.result?.slice(0, 40).replaceAll('\n', ' '),
  ]);
  print(formatTable(['id', 'url', 'events', 'proof', 'profile', 'state', 'result_code', 'result'], rows));
}

function describe({ cli }: CliWebhooks, stored: StoredHook) {
  return toHookJson(stored, cli.vault, cli.world.nowMs());
}

async function test(text: string, id: string): Promise<void> {
  await using webhooks = await openWebhooks();
  const { management, cli, guard } = webhooks;
  const repository = await findRepository(webhooks, text);
  const { hook } = await findHook(management, repository, parseId(id));
  await guard.checkTarget(hook.url);
  const actor = { username: repository.ownerLogin, name: repository.ownerLogin };
  const event = createSampleEvent('push', actor, repository.defaultBranch, cli.world.nowMs());
  const deliveryId = await announceTest(
    management,
    { repository, event, source: 'test', idempotencyKey: undefined },
    hook,
  );
  await withWorker(webhooks, ({ urgent }) => urgent.test(deliveryId, cli.world.nowMs() + TEST_DEADLINE_MS));
  const isAccepted = await reportAttempt(webhooks, hook.id, deliveryId);
  if (!isAccepted) throw new Failure('unavailable', 'The receiver did not accept the test');
}

async function withWorker<T>({ cli, guard }: CliWebhooks, work: (worker: DeliveryWorker) => Promise<T>): Promise<T> {
  const worker = createDeliveryWorker({ ...cli, metrics: createMetrics(), guard });
  try {
    return await work(worker);
  } finally {
    await worker.stop();
  }
}

/** Prints what came of the last attempt; true when it was accepted. */
async function reportAttempt({ cli }: CliWebhooks, hookId: number, deliveryId: number): Promise<boolean> {
  const found = await findDelivery(cli.store, hookId, deliveryId);
  const last = found?.attempts.at(-1);
  if (found === undefined || last === undefined)
    throw new Failure('unavailable', `Cannot send to the webhook: nothing was sent yet, delivery ${deliveryId} waits`);
  const { status_code, reason, timings_ms, response_body } = toAttemptJson(last);
  print(`${status_code || reason} in ${Math.round(timings_ms.total)} ms (delivery ${deliveryId})`);
  if (response_body !== '') remark(response_body.slice(0, 1000));
  return last.outcome === 'accepted';
}

async function remove(text: string, id: string): Promise<void> {
  await using webhooks = await openWebhooks();
  const repository = await findRepository(webhooks, text);
  const { hook } = await findHook(webhooks.management, repository, parseId(id));
  await webhooks.management.hooks.remove(hook.id, [cancelEndpointStep(hook.id, webhooks.cli.world.nowMs())]);
  print(`Deleted webhook ${hook.id} of ${text}`);
}

interface DeliveriesOptions {
  readonly delivery?: string;
  readonly limit: number;
  readonly json?: boolean;
}

async function showDeliveries(text: string, id: string, options: DeliveriesOptions): Promise<void> {
  await using webhooks = await openWebhooks();
  const repository = await findRepository(webhooks, text);
  const { hook } = await findHook(webhooks.management, repository, parseId(id));
  if (options.delivery !== undefined) return await showDelivery(webhooks, hook.id, parseId(options.delivery));
  const { store } = webhooks.cli;
  const filter = { hookId: hook.id, state: undefined, eventKind: undefined, sinceMs: 0, limit: options.limit };
  const found = await listDeliveries(store, {
    ...filter,
    untilMs: Number.MAX_SAFE_INTEGER,
    beforeId: Number.MAX_SAFE_INTEGER,
  });
  const held = await isHeld(store, hook.id);
  const deliveries = found.map((delivery) => toDeliveryJson(delivery, held));
  if (options.json) {
    for (const delivery of deliveries) printJson(delivery);
    return;
  }
  const rows = deliveries.map((delivery) => [
    delivery.id,
    delivery.created_at,
    delivery.event,
    delivery.state,
    delivery.attempts,
    delivery.status_code,
    delivery.next_attempt_at,
  ]);
  print(formatTable(['delivery', 'created', 'event', 'state', 'attempts', 'status', 'next attempt'], rows));
}

async function showDelivery({ cli }: CliWebhooks, hookId: number, id: number): Promise<void> {
  const found = await findDelivery(cli.store, hookId, id);
  if (found === undefined) throw new Failure('not_found', `Delivery not found: the webhook has no ${id}`);
  const attempts = found.attempts.map(toAttemptJson);
  printJson({ ...toDeliveryJson(found.delivery, await isHeld(cli.store, hookId)), attempt_log: attempts });
}

async function sendAgain(text: string, id: string, deliveryId: string): Promise<void> {
  await using webhooks = await openWebhooks();
  const repository = await findRepository(webhooks, text);
  const { hook } = await findHook(webhooks.management, repository, parseId(id));
  await webhooks.guard.checkTarget(hook.url);
  const number = parseId(deliveryId);
  const isSent = await withWorker(webhooks, async ({ urgent }) => {
    const redelivery = await urgent.redeliver(hook.id, number);
    if (redelivery === undefined)
      throw new Failure('not_found', `Delivery not found: the webhook has no ${deliveryId}`);
    return (await redelivery.attempt) !== undefined;
  });
  if (!isSent) return print(`Delivery ${deliveryId} is held until the webhook is on again`);
  const isAccepted = await reportAttempt(webhooks, hook.id, number);
  if (!isAccepted) throw new Failure('unavailable', 'The receiver did not accept it; the service tries again');
}

function parseId(text: string): number {
  if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text);
  throw new Failure('invalid', `Cannot find it: the id must be a whole number, got "${text}"`);
}
