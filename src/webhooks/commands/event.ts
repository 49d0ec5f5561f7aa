/** `trivet event`: announce events, for trying receivers and for scripts. */
import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { print, printJson } from '../../command-line/output.ts';
import { wholeNumber } from '../../command-line/whole-number.ts';
import { Failure } from '../../errors.ts';
import { type Event, eventSchema } from '../events/event.ts';
import { EVENT_KINDS, type EventKind } from '../events/event-kind.ts';
import { createSampleEvent } from '../events/sample-event.ts';
import { publishEvent } from '../management/publish-event.ts';
import { type Parameters, parseParameters } from '../parameters/parameters.ts';
import type { Repository } from '../repositories/repository.ts';
import { findRepository, type OpenWebhooks } from './open-webhooks.ts';

export function createEventCommand(open: OpenWebhooks): Command {
  const command = new Command('event').description('Announce events of a repository');
  command
    .command('send <owner/name>')
    .description('Announce an event; the service delivers it, when it is up')
    .option('--kind <kind>', `one of ${EVENT_KINDS.join(', ')}`, 'push')
    .option('--file <path>', 'the event as JSON, - for standard input')
    .option('--sample', 'a sample of the kind')
    .option('--count <number>', 'so many times', wholeNumber(1, 1_000_000), 1)
    .option('--key <text>', 'idempotency key: a repetition within 24 hours sends nothing')
    .option('--json', 'print the answers as JSON')
    .action(send.bind(undefined, open));
  return command;
}

interface SendOptions {
  readonly kind: string;
  readonly file?: string;
  readonly sample?: boolean;
  readonly count: number;
  readonly key?: string;
  readonly json?: boolean;
}

async function send(open: OpenWebhooks, text: string, options: SendOptions): Promise<void> {
  if ((options.file === undefined) === (options.sample !== true))
    throw new Failure('invalid', 'Cannot announce: give either --file or --sample');
  await using webhooks = await open();
  const repository = await findRepository(webhooks, text);
  const event =
    options.file === undefined
      ? sampleOf(options.kind, repository, webhooks.cli.world.nowMs())
      : readEvent(options.file);
  let deliveries = 0;
  for (let index = 0; index < options.count; index++) {
    const idempotencyKey = options.key && (options.count === 1 ? options.key : `${options.key}-${index}`);
    const answer = await publishEvent(webhooks.management, { repository, event, source: 'cli', idempotencyKey });
    deliveries += answer.deliveries.length;
    if (options.json) printJson(answer);
  }
  if (!options.json) print(`${options.count} announced, ${deliveries} deliveries made`);
}

function sampleOf(text: string, repository: Repository, nowMs: number): Event {
  const kind = EVENT_KINDS.find((candidate): candidate is EventKind => candidate === text);
  if (kind === undefined)
    throw new Failure('invalid', `Cannot announce: --kind must be of ${EVENT_KINDS.join(', ')}, got "${text}"`);
  const actor = { username: repository.ownerLogin, name: repository.ownerLogin };
  return createSampleEvent(kind, actor, repository.defaultBranch, nowMs);
}

function readEvent(path: string): Event {
  const event = tryParseObject(readFileSync(path === '-' ? 0 : path, 'utf8'));
  if (event !== undefined) return parseParameters(eventSchema, event, 'announce the event');
  throw new Failure('invalid', `Cannot announce the event: "${path}" must hold one JSON object`);
}

function tryParseObject(text: string): Parameters | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Parameters) : undefined;
  } catch {
    return undefined;
  }
}
