/**
 * Where every event comes in. An event and one delivery for every hook that wants its kind commit together, before
 * the caller gets its answer. Events that arrive meanwhile share the commit.
 */
import type { Store } from '../../database/store.ts';
import { Failure, isFailure } from '../../errors.ts';
import type { World } from '../../world.ts';
import type { HookStore } from '../hooks/hook-store.ts';
import { refuseDeleted } from '../repositories/repository-access.ts';
import {
  draftEvent,
  type EventDraft,
  type EventReceipt,
  fingerprintOf,
  type IncomingEvent,
  KEY_USED,
  type Recipients,
} from './draft-event.ts';
import { commitEvents, type KeyHolder } from './event-batch-store.ts';
import { createGroupCommit } from './group-commit.ts';

const MAX_EVENTS = 64;
/** Of events and bodies in one commit. A larger event commits alone: a megabyte to fifty webhooks is fifty megabytes. */
const MAX_BYTES = 4 * 1024 * 1024;
/** Of the events of one owner that wait for their commit. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024;
/** An id that the store has already, perhaps of an older version that runs beside, is given up with its draft. */
const MAX_DRAFTS = 5;

export interface Intake {
  /** To the hooks that want it, or to those that are given. The same key with the same event answers as the first time. */
  take(incoming: IncomingEvent, recipients?: Recipients): Promise<EventReceipt>;
}

export interface IntakeDependencies {
  readonly store: Store;
  readonly world: World;
  readonly hooks: Pick<HookStore, 'listWanting'>;
}

interface Item {
  readonly incoming: IncomingEvent;
  readonly recipients: Recipients | undefined;
  /** The event as JSON. */
  readonly content: string;
}

type Outcome = { readonly answer: EventReceipt } | { readonly holder: KeyHolder };

export function createIntake(dependencies: IntakeDependencies): Intake {
  const group = createGroupCommit({
    maxItems: MAX_EVENTS,
    maxWaitingBytes: MAX_WAITING_BYTES,
    ownerOf: ({ incoming }: Item) => incoming.repository.ownerId,
    bytesOf: ({ content }) => content.length,
    commit: (items) => commit(dependencies, items),
  });
  return {
    take: async (incoming, recipients) => {
      const item = { incoming, recipients, content: JSON.stringify(incoming.event) };
      const outcome = await refuseDeleted(incoming.repository, group.submit(item));
      return 'answer' in outcome ? outcome.answer : repeatAnswer(outcome.holder, item);
    },
  };
}

async function commit(dependencies: IntakeDependencies, items: readonly Item[]): Promise<(Outcome | undefined)[]> {
  for (let drafts = 1; ; drafts += 1)
    try {
      return await commitDrafts(dependencies, items);
    } catch (error) {
      if (!isDuplicate(error)) throw error;
      if (drafts === MAX_DRAFTS) throw refuseForNow(error);
    }
}

/** Not the conflict that it is here: to who announces that would say that the event can never be taken. */
function refuseForNow(cause: unknown): Failure {
  const message = 'Cannot announce the event right now: its ids are taken';
  return new Failure('unavailable', message, { retryAfterSeconds: 1 }, { cause });
}

function isDuplicate(error: unknown): boolean {
  return isFailure(error) && error.details.isDuplicate === true;
}

/** The outcomes; undefined for events that are too large to go with those before them. */
async function commitDrafts(
  { store, world, hooks }: IntakeDependencies,
  items: readonly Item[],
): Promise<(Outcome | undefined)[]> {
  const findRecipients = await readRecipients(hooks, items);
  const drafts = new Map<Item, EventDraft>();
  let bytes = 0;
  for (const item of items) {
    const recipients = findRecipients(item);
    const estimate = item.content.length * (1 + recipients.hooks.length);
    // The first one goes, whatever its size. A large one behind it is left, so that small ones wait for no commit of its size.
    if (drafts.size > 0 && bytes + estimate > MAX_BYTES) continue;
    const ids = await store.makeIds(1 + recipients.hooks.length);
    const draft = await draftEvent({ world, ids, content: item.content }, item.incoming, recipients);
    drafts.set(item, draft);
    bytes += draft.bytes;
  }
  const holders = await store.call(
    commitEvents,
    [...drafts.values()].map(({ event }) => event),
  );
  const outcomes = new Map([...drafts].map(([item, { answer }], index) => [item, toOutcome(answer, holders[index])]));
  return items.map((item) => outcomes.get(item));
}

function toOutcome(answer: EventReceipt, holder: KeyHolder | undefined): Outcome {
  return holder === undefined ? { answer } : { holder };
}

/** Of events of one kind and repository the hooks are read once. */
async function readRecipients(
  hooks: IntakeDependencies['hooks'],
  items: readonly Item[],
): Promise<(item: Item) => Recipients> {
  const keyOf = ({ incoming: { repository, event } }: Item) => `${repository.id} ${event.kind}`;
  const open = new Map(items.filter((item) => item.recipients === undefined).map((item) => [keyOf(item), item]));
  const read = [...open].map(
    async ([
      key,
      {
        incoming: { repository, event },
      },
    ]) => {
      const wanting = await hooks.listWanting(repository.id, event.kind);
      return [key, { hooks: wanting }] as const;
    },
  );
  const byKey = new Map<string, Recipients>(await Promise.all(read));
  return (item) => item.recipients ?? byKey.get(keyOf(item)) ?? { hooks: [] };
}

function repeatAnswer(holder: KeyHolder, { content, incoming: { idempotencyKey } }: Item): EventReceipt {
  if (holder.fingerprint === fingerprintOf(content)) return JSON.parse(holder.answer) as EventReceipt;
  throw new Failure(
    'conflict',
    `Cannot announce the event: the idempotency key "${idempotencyKey ?? ''}" stands for another one`,
    { field: 'Idempotency-Key', errorCodeName: KEY_USED },
  );
}
