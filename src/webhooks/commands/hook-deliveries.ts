/** Runs `trivet hook` for deliveries: list, show, test, redeliver, replay. */
import { type Command, Option } from 'commander';
import { type Cell, formatTable, print, printJson, printTable, remark } from '../../command-line/output.ts';
import { PAST_TIME_EXAMPLES, type PastTime, parsePastTime } from '../../command-line/time-option.ts';
import { wholeNumber } from '../../command-line/whole-number.ts';
import { Failure } from '../../errors.ts';
import type { Operator } from '../../operations/call-on-store.ts';
import type { InputOf, OutputOf } from '../../operations/operation.ts';
import {
  listDeliveries,
  redeliver,
  replayDeliveries,
  sendAllWaiting,
  showDelivery,
  testAnyHook,
} from '../administration/delivery-operations.ts';
import type { HookReference } from '../administration/find-hook.ts';
import { showHook } from '../administration/hook-operations.ts';
import { DELIVERY_STATES } from '../delivery/schedule/delivery.ts';
import { EVENT_KINDS } from '../events/event-kind.ts';
import { TEST_EVENTS, type TestEvent } from '../events/test-event.ts';
import { listParameters } from '../management/manage-delivery.ts';
import { dropAbsent, parseParameters } from '../parameters/parameters.ts';
import { addHookCommand, type HookOptions } from './hook-command.ts';
import { remarkPause } from './hook-show.ts';
import { type OpenWebhooks, parseHookReference } from './open-webhooks.ts';

export function addDeliveryCommands(command: Command, open: OpenWebhooks): void {
  addHookCommand(
    command,
    'test <owner/name> <id>',
    'Send a test delivery now, also during a pause, and print the outcome; if it is accepted, the pause ends and waiting deliveries are sent; exits with 1 if it is not accepted',
  )
    .addOption(
      new Option('--event <kind>', 'what to send (default: the first kind of event that the webhook gets)').choices(
        TEST_EVENTS,
      ),
    )
    .action(test.bind(undefined, open));
  addHookCommand(
    command,
    'deliveries <owner/name> <id>',
    'Show the newest deliveries of a webhook, or one with every attempt',
    'one JSON object a line; of one delivery also its body, headers and answers',
  )
    .option('--delivery <id>', 'this one, by its id or the UUID that the receiver saw, with every attempt')
    .option('--state <state>', `in this state: ${DELIVERY_STATES.join(', ')}`)
    .option('--event <kind>', `of this kind of event: ${EVENT_KINDS.join(', ')}`)
    .option('--since <time>', `made from this time on: ${PAST_TIME_EXAMPLES}`, parsePastTime)
    .option('--until <time>', 'made before this time, in the same notation', parsePastTime)
    .option('--status <status>', 'last answered with this: 500, 5xx, or 0 for no answer')
    .option('--subject <text>', 'about this branch, tag or number, as in main, v1.2 or "#12"')
    .option('--limit <number>', 'how many', wholeNumber(1, 10_000), 20)
    .action(showDeliveries.bind(undefined, open));
  addHookCommand(
    command,
    'redeliver <owner/name> <id> <delivery-id>',
    'Send a delivery again now, and print the outcome; if it is refused, the service tries again by the schedule',
  ).action(async (text: string, id: string, delivery: string, options: HookOptions) =>
    sendAgain(open, { ...parseHookReference(text, id), delivery }, options),
  );
  addHookCommand(
    command,
    'send-waiting <owner/name> <id>',
    'Send all deliveries now that wait for a retry or the end of a pause; the running service sends them',
  ).action(sendWaiting.bind(undefined, open));
  addHookCommand(
    command,
    'replay <owner/name> <id>',
    'Send all deliveries again that failed permanently since a time; the running service sends them',
  )
    .requiredOption('--since <time>', `from this time on: ${PAST_TIME_EXAMPLES}`, parsePastTime)
    .action(sendFailedAgain.bind(undefined, open));
}

interface TestOptions extends HookOptions {
  readonly event?: TestEvent;
}

async function test(open: OpenWebhooks, text: string, id: string, options: TestOptions): Promise<void> {
  const reference = parseHookReference(text, id);
  await using operator = await open(options);
  const sent = await operator.call(testAnyHook, { ...reference, event: options.event });
  printSent(sent, options);
  if (!sent.accepted) throw new Failure('unavailable', 'The receiver did not accept the test');
}

type Sent = OutputOf<typeof testAnyHook>;

function printSent(sent: Sent, { json }: HookOptions): void {
  const { attempt, delivery } = sent;
  if (json) {
    printJson(sent);
    return;
  }
  if (attempt === null) {
    print(`Delivery ${delivery} ${WAITS_FOR[sent.state] ?? `is ${sent.state}`}`);
    return;
  }
  const { status_code, reason, timings_ms, response_body } = attempt;
  print(`${status_code || reason} in ${Math.round(timings_ms.total)} ms (delivery ${delivery})`);
  if (response_body !== '') remark(response_body.slice(0, 1000));
}

/** Why nothing has been sent yet, by the state of the delivery. */
const WAITS_FOR: Readonly<Partial<Record<Sent['state'], string>>> = {
  held: 'is held until the webhook is on again',
  pending: 'waits for its turn; the service sends it',
};

interface DeliveriesOptions extends HookOptions {
  readonly delivery?: string;
  readonly state?: string;
  readonly event?: string;
  readonly since?: PastTime;
  readonly until?: PastTime;
  readonly status?: string;
  readonly subject?: string;
  readonly limit: number;
}

async function showDeliveries(open: OpenWebhooks, text: string, id: string, options: DeliveriesOptions): Promise<void> {
  const reference = parseHookReference(text, id);
  const { delivery, state, event, status, subject, limit } = options;
  const asked = dropAbsent({ state, event, status_code: status, subject });
  // Checked before the request, so that the message is that of the rule.
  parseParameters(listParameters, asked, 'list the deliveries');
  await using operator = await open(options);
  if (delivery !== undefined)
    return printDelivery(await operator.call(showDelivery, { ...reference, delivery }), options);
  const since = await options.since?.(operator);
  const until = await options.until?.(operator);
  const filter = dropAbsent({ ...asked, since, until });
  const deliveries = await readDeliveries(operator, reference, { filter, limit });
  if (options.json) {
    for (const one of deliveries) printJson(one);
    return;
  }
  printTable(HEADINGS, deliveries.map(listCells), 'No delivery');
  remarkPause(await operator.call(showHook, reference));
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

type Page = OutputOf<typeof listDeliveries>;
type ListedDelivery = Page['deliveries'][number];

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

type Delivery = OutputOf<typeof showDelivery>;

function printDelivery(delivery: Delivery, { json }: HookOptions): void {
  if (json) {
    printJson(delivery);
    return;
  }
  const facts: [string, Cell][] = [
    ['delivery', delivery.id],
    ['as the receiver sees it', delivery.uuid],
    ['event', `${delivery.event} ${delivery.subject ?? ''}`.trimEnd()],
    ['created', delivery.created_at],
    ['state', delivery.state],
    ['next attempt', delivery.next_attempt_at],
    ['waits for', delivery.waits_for],
  ];
  print(formatTable(['field', 'value'], facts));
  print('');
  print(
    formatTable(
      ['attempt', 'started', 'outcome', 'status', 'ms', 'reason or answer'],
      delivery.attempt_log.map(listAttemptCells),
    ),
  );
  remark('The body, and the headers and the whole answer of each attempt: --json');
}

function listAttemptCells({ attempt, started_at, outcome, status_code, ...more }: Delivery['attempt_log'][number]) {
  const answer = more.reason ?? more.response_body.slice(0, 60).trimEnd().replaceAll('\n', ' ');
  return [attempt, started_at, outcome, status_code, Math.round(more.timings_ms.total), answer];
}

const PAGE_SIZE = 100;

async function readDeliveries(
  operator: Operator,
  reference: HookReference,
  { filter, limit }: { readonly filter: object; readonly limit: number },
): Promise<ListedDelivery[]> {
  const deliveries: ListedDelivery[] = [];
  for (let before: number | null | undefined; before !== null && deliveries.length < limit; ) {
    const size = Math.min(PAGE_SIZE, limit - deliveries.length);
    const page: Page = await operator.call(listDeliveries, { ...filter, ...reference, before, per_page: size });
    deliveries.push(...page.deliveries);
    before = page.next;
  }
  return deliveries;
}

async function sendAgain(
  open: OpenWebhooks,
  reference: InputOf<typeof redeliver>,
  options: HookOptions,
): Promise<void> {
  await using operator = await open(options);
  const sent = await operator.call(redeliver, reference);
  printSent(sent, options);
  if (sent.attempt !== null && !sent.accepted)
    throw new Failure('unavailable', 'The receiver did not accept it; the service tries again');
}

async function sendWaiting(open: OpenWebhooks, text: string, id: string, options: HookOptions): Promise<void> {
  const reference = parseHookReference(text, id);
  await using operator = await open(options);
  const answer = await operator.call(sendAllWaiting, reference);
  if (options.json) return printJson(answer);
  const { waiting } = answer;
  print(`${waiting} waiting ${waiting === 1 ? 'delivery' : 'deliveries'} of webhook ${answer.id} will be sent now`);
}

interface ReplayOptions extends HookOptions {
  readonly since: PastTime;
}

async function sendFailedAgain(open: OpenWebhooks, text: string, id: string, options: ReplayOptions): Promise<void> {
  const reference = parseHookReference(text, id);
  const { json } = options;
  await using operator = await open(options);
  const since = await options.since(operator);
  const answer = await operator.call(replayDeliveries, { ...reference, since });
  if (json) return printJson(answer);
  const { replayed } = answer;
  print(`${replayed} ${replayed === 1 ? 'delivery' : 'deliveries'} of webhook ${answer.id} will be sent again`);
}
