/** Runs `trivet event`: publishes events on the store or at a running service. */
import { Command } from 'commander';
import { addServiceOptions, type ServiceOptions } from '../../command-line/open-operator.ts';
import { print, printJson, readNamedFile } from '../../command-line/output.ts';
import { wholeNumber } from '../../command-line/whole-number.ts';
import { Failure } from '../../errors.ts';
import { parseJson } from '../../http/parser-limits.ts';
import type { InputOf } from '../../operations/operation.ts';
import { publishAnyEvent } from '../administration/repository-operations.ts';
import { eventSchema } from '../events/event.ts';
import { EVENT_KINDS, type EventKind } from '../events/event-kind.ts';
import { type Parameters, parseParameters } from '../parameters/parameters.ts';
import { type OpenWebhooks, parseRepositoryName } from './open-webhooks.ts';

export function createEventCommand(open: OpenWebhooks): Command {
  const command = new Command('event').description('Publish events of a repository');
  addServiceOptions(command.command('send <owner/name>'))
    .description('Publish an event; the service delivers it once it runs')
    .option('--event, --kind <kind>', `one of ${EVENT_KINDS.join(', ')}`, 'push')
    .option('--file <path>', 'the event as JSON, - for standard input')
    .option('--sample', 'a sample of the kind')
    .option('--count <number>', 'how many times', wholeNumber(1, 1_000_000), 1)
    .option(
      '--key <text>',
      'idempotency key: the same event again within 24 hours sends nothing; each --sample is another event',
    )
    .option('--json', 'print the answers as JSON')
    .action(send.bind(undefined, open));
  return command;
}

interface SendOptions extends ServiceOptions {
  readonly kind: string;
  readonly file?: string;
  readonly sample?: boolean;
  readonly count: number;
  readonly key?: string;
  readonly json?: boolean;
}

async function send(open: OpenWebhooks, text: string, options: SendOptions): Promise<void> {
  const { kind, file, sample, count, key, json } = options;
  if ((file === undefined) === (sample !== true))
    throw new Failure('invalid', 'Cannot publish: give either --file or --sample');
  const repository = parseRepositoryName(text);
  const published = file === undefined ? { sample: readKind(kind) } : { event: readEvent(file) };
  await using operator = await open(options);
  let deliveries = 0;
  for (let index = 0; index < count; index++) {
    const idempotencyKey = key && (count === 1 ? key : `${key}-${index}`);
    const answer = await operator.call(publishAnyEvent, { ...repository, ...published, idempotencyKey });
    deliveries += answer.deliveries.length;
    if (json) printJson(answer);
  }
  if (!json) print(`${count} published, ${deliveries} ${deliveries === 1 ? 'delivery' : 'deliveries'} made`);
}

function readKind(text: string): EventKind {
  const kind = EVENT_KINDS.find((candidate): candidate is EventKind => candidate === text);
  if (kind === undefined)
    throw new Failure('invalid', `Cannot publish: --kind must be of ${EVENT_KINDS.join(', ')}, got "${text}"`);
  return kind;
}

type PublishedEvent = InputOf<typeof publishAnyEvent>['event'];

function readEvent(path: string): PublishedEvent {
  const event = tryParseObject(readNamedFile(path));
  if (event === undefined)
    throw new Failure('invalid', `Cannot publish the event: "${path}" must hold one JSON object`);
  // Checked before the request, so that the message is that of the rule.
  parseParameters(eventSchema, event, 'publish the event');
  return event as unknown as PublishedEvent;
}

function tryParseObject(text: string): Parameters | undefined {
  const value = parseJson(text);
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Parameters) : undefined;
}
