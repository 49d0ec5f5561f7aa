/** What became of the deliveries of a webhook, a test, and sending again. */
import type { Command } from 'commander';
import { formatTable, print, printJson, remark } from '../../command-line/output.ts';
import { wholeNumber } from '../../command-line/whole-number.ts';
import { Failure } from '../../errors.ts';
import { createMetrics } from '../../telemetry/metrics.ts';
import { findDelivery } from '../delivery/queue/delivery-log-store.ts';
import { DELIVERY_STATES } from '../delivery/schedule/delivery.ts';
import { createDeliveryWorker, type DeliveryWorker } from '../delivery/worker/delivery-worker.ts';
import { createSampleEvent } from '../events/sample-event.ts';
import { readHold } from '../hooks/hook-status-store.ts';
import { toAttemptJson, toDeliveryJson } from '../management/delivery-json.ts';
import { type DeliveryPage, readDeliveryPage, replaySince } from '../management/manage-delivery.ts';
import type { Management } from '../management/management.ts';
import { publishTest } from '../management/publish-event.ts';
import { dropAbsent } from '../parameters/parameters.ts';
import { describePause } from './hook-pause.ts';
import { type CliWebhooks, findWebhook, type OpenWebhooks, parseId } from './open-webhooks.ts';

const TEST_DEADLINE_MS = 10_000;

export function addDeliveryCommands(command: Command, open: OpenWebhooks): void {
  command
    .command('test <owner/name> <id>')
    .description(
      'Send a test delivery now, past a pause, and say how it went; accepted, it ends the pause and what waits is sent; exits with 1 when it was not accepted',
    )
    .action(test.bind(undefined, open));
  command
    .command('deliveries <owner/name> <id>')
    .description('Show the newest deliveries of a webhook, or one with every attempt')
    .option('--delivery <id>', 'this one')
    .option('--state <state>', `in this state: ${DELIVERY_STATES.join(', ')}`)
    .option('--status <status>', 'last answered with this: 500, 5xx, or 0 for no answer')
    .option('--subject <text>', 'about this branch, tag or number, as in main, v1.2 or "#12"')
    .option('--limit <number>', 'how many', wholeNumber(1, 10_000), 20)
    .option('--json', 'one JSON object a line')
    .action(showDeliveries.bind(undefined, open));
  command
    .command('redeliver <owner/name> <id> <delivery-id>')
    .description('Send a delivery again; the service does it, when it is up')
    .action(sendAgain.bind(undefined, open));
  command
    .command('replay <owner/name> <id>')
    .description('Send all deliveries again that failed permanently since a time; the running service sends them')
    .requiredOption('--since <time>', 'an ISO 8601 time with Z or an offset, as in 2026-03-01T10:00:00Z')
    .action(sendFailedAgain.bind(undefined, open));
}

async function test(open: OpenWebhooks, text: string, id: string): Promise<void> {
  await using webhooks = await open();
  const { management, cli, guard } = webhooks;
  const { repository, hook } = await findWebhook(webhooks, text, id);
  await guard.checkUrl(hook.url);
  const actor = { username: repository.ownerLogin, name: repository.ownerLogin };
  const event = createSampleEvent('push', actor, repository.defaultBranch, cli.world.nowMs());
  const deliveryId = await publishTest(
    management,
    { repository, event, source: 'test', idempotencyKey: undefined },
    hook,
  );
  await withWorker(webhooks, ({ manual }) => manual.test(deliveryId, cli.world.nowMs() + TEST_DEADLINE_MS));
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

interface DeliveriesOptions {
  readonly delivery?: string;
  readonly state?: string;
  readonly status?: string;
  readonly subject?: string;
  readonly limit: number;
  readonly json?: boolean;
}

async function showDeliveries(open: OpenWebhooks, text: string, id: string, options: DeliveriesOptions): Promise<void> {
  await using webhooks = await open();
  const { hook } = await findWebhook(webhooks, text, id);
  if (options.delivery !== undefined) return await showDelivery(webhooks, hook.id, parseId(options.delivery));
  const { management, cli } = webhooks;
  const deliveries = await readDeliveries(management, hook.id, options);
  if (options.json) {
    for (const delivery of deliveries) printJson(delivery);
    return;
  }
  print(formatTable(HEADINGS, deliveries.map(listCells)));
  const { pause } = await readHold(cli.store, hook.id, cli.world.nowMs());
  if (pause !== undefined) remark(describePause(pause));
}

const HEADINGS = [
  'delivery',
  'created',
  'event',
  'subject',
  'state',
  'attempts',
  'status',
  'ms',
  'next attempt',
  'waits for',
  'reason',
];

type ListedDelivery = DeliveryPage['deliveries'][number];

function listCells(delivery: ListedDelivery) {
  return [
    delivery.id,
    delivery.created_at,
    delivery.event,
    delivery.subject ?? '',
    delivery.state,
    delivery.attempts,
    delivery.status_code,
    delivery.duration_ms === null ? '' : Math.round(delivery.duration_ms),
    delivery.next_attempt_at,
    delivery.waits_for,
    delivery.reason ?? '',
  ];
}

const PAGE_SIZE = 100;

/** Page by page, as the API reads them. */
async function readDeliveries(
  management: Management,
  hookId: number,
  { state, status, subject, limit }: DeliveriesOptions,
): Promise<ListedDelivery[]> {
  const filter = dropAbsent({ state, status_code: status, subject });
  const deliveries: ListedDelivery[] = [];
  for (let before = Number.MAX_SAFE_INTEGER; deliveries.length < limit; ) {
    const size = Math.min(PAGE_SIZE, limit - deliveries.length);
    const page = await readDeliveryPage(management, hookId, { ...filter, before, per_page: size });
    deliveries.push(...page.deliveries);
    if (page.nextBefore === undefined) break;
    before = page.nextBefore;
  }
  return deliveries;
}

async function showDelivery({ cli }: CliWebhooks, hookId: number, id: number): Promise<void> {
  const found = await findDelivery(cli.store, hookId, id);
  if (found === undefined) throw new Failure('not_found', `Delivery not found: the webhook has no ${id}`);
  const attempts = found.attempts.map(toAttemptJson);
  const nowMs = cli.world.nowMs();
  const hold = await readHold(cli.store, hookId, nowMs);
  printJson({ ...toDeliveryJson(found.delivery, hold, nowMs), attempt_log: attempts });
}

async function sendAgain(open: OpenWebhooks, text: string, id: string, deliveryId: string): Promise<void> {
  await using webhooks = await open();
  const { hook } = await findWebhook(webhooks, text, id);
  await webhooks.guard.checkUrl(hook.url);
  const number = parseId(deliveryId);
  const isSent = await withWorker(webhooks, async ({ manual }) => {
    const redelivery = await manual.redeliver(hook.id, number);
    if (redelivery === undefined)
      throw new Failure('not_found', `Delivery not found: the webhook has no ${deliveryId}`);
    return (await redelivery.attempt) !== undefined;
  });
  if (!isSent) return print(`Delivery ${deliveryId} is held until the webhook is on again`);
  const isAccepted = await reportAttempt(webhooks, hook.id, number);
  if (!isAccepted) throw new Failure('unavailable', 'The receiver did not accept it; the service tries again');
}

async function sendFailedAgain(
  open: OpenWebhooks,
  text: string,
  id: string,
  { since }: { since: string },
): Promise<void> {
  await using webhooks = await open();
  const { hook } = await findWebhook(webhooks, text, id);
  const count = await replaySince(webhooks.management, hook, { since });
  print(`${count} ${count === 1 ? 'delivery' : 'deliveries'} of webhook ${hook.id} will be sent again`);
}
