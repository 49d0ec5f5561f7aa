/**
 * Where every event comes in. An event and one delivery for every hook that wants its kind commit together, before
 * the caller gets its answer. Events that arrive meanwhile share the commit.
 */
import type { Store } from '../../database/store.ts';
import { Failure, isFailure } from '../../errors.ts';
import type { World } from '../../world.ts';
import { contentStatements, type NewDelivery } from '../delivery/queue/delivery-store.ts';
import { deleteContentsOf } from '../delivery/queue/delivery-sweep-store.ts';
import { listHooksWanting } from '../hooks/hook-store.ts';
import type { Repository } from '../repositories/repository.ts';
import { refuseDeleted } from '../repositories/repository-access.ts';
import {
  draftEvent,
  type EventDraft,
  fingerprintOf,
  type IncomingEvent,
  KEY_USED,
  type Recipients,
} from './draft-event.ts';
import { commitEvents, findKeyHolder, insertEvents, type KeyHolder, type NewEvent } from './event-batch-store.ts';
import type { EventReceipt } from './event-receipt.ts';
import { createGroupCommit, type GroupCommit } from './group-commit.ts';

const MAX_EVENTS = 64;
/**
 * Of events and bodies in one commit. The bodies of a larger event are stored before it, in parts of this size: a megabyte
 * to fifty webhooks is fifty megabytes, and other events would wait for such a commit.
 */
const MAX_BYTES = 1024 * 1024;
/** Of the events of one owner that wait for their commit. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024;
/** An id that the store has already, perhaps of an older version that runs beside, is given up with its draft. */
const MAX_DRAFTS = 5;

export interface Intake {
  /** To the hooks that want it, or to those that are given. The same key with the same event answers as the first time. */
  take(incoming: IncomingEvent, recipients?: Recipients): Promise<EventReceipt>;
  /** Throws `unavailable` when an event of so many bytes would be refused, so that its request is not even read. */
  checkRoom(repository: Pick<Repository, 'ownerId'>, bytes: number): void;
}

export interface IntakeDependencies {
  readonly store: Store;
  readonly world: World;
}

interface Item {
  readonly incoming: IncomingEvent;
  readonly recipients: Recipients | undefined;
  /** The event as JSON. */
  readonly content: string;
  /** Of a large event, whose bodies are stored. */
  readonly draft?: EventDraft;
}

type Outcome =
  | { readonly answer: EventReceipt }
  | { readonly holder: KeyHolder }
  /** Nothing of it is stored: it goes in parts. */
  | { readonly tooLargeFor: Recipients };

export function createIntake(dependencies: IntakeDependencies): Intake {
  const limits = { maxWaitingBytes: MAX_WAITING_BYTES, ownerOf: ({ incoming }: Item) => incoming.repository.ownerId };
  const group = createGroupCommit<Item, Outcome>({
    ...limits,
    maxItems: MAX_EVENTS,
    bytesOf: ({ content, draft }) => (draft === undefined ? content.length : 0),
    commit: (items) => commit(dependencies, items),
  });
  // One at a time, so that memory holds the bodies of one part.
  const largeGroup = createGroupCommit<Item, Outcome>({
    ...limits,
    maxItems: 1,
    bytesOf: ({ content }) => content.length,
    commit: async ([item]) => [await retryTaken(() => storeInParts(dependencies, item!, group))],
  });
  const submit = async (item: Item): Promise<Outcome> => {
    const outcome = await group.submit(item);
    return 'tooLargeFor' in outcome ? await largeGroup.submit({ ...item, recipients: outcome.tooLargeFor }) : outcome;
  };
  return {
    // A smaller one may fit into a commit with its bodies.
    checkRoom: ({ ownerId }, bytes) => {
      if (2 * bytes > MAX_BYTES) largeGroup.checkRoom(ownerId, bytes);
    },
    take: async (incoming, recipients) => {
      const item = { incoming, recipients, content: JSON.stringify(incoming.event) };
      return readReceipt(await refuseDeleted(incoming.repository, submit(item)), item);
    },
  };
}

/** Stores the bodies, a part at a time and other events between the parts, and then the event with its deliveries. */
async function storeInParts(
  { store, world }: IntakeDependencies,
  item: Item,
  group: GroupCommit<Item, Outcome>,
): Promise<Outcome> {
  const { incoming, content, recipients = { hooks: [] } } = item;
  const { idempotencyKey: key, repository } = incoming;
  const holder = key && (await findKeyHolder(store, repository.id, { key, nowMs: world.nowMs() }));
  if (holder) return { holder };
  const storedIds: number[] = [];
  const storeBodies = async (deliveries: readonly NewDelivery[]): Promise<void> => {
    await store.writeAll(contentStatements(deliveries));
    for (const { id, body } of deliveries) if (!('storedBytes' in body)) storedIds.push(id);
  };
  try {
    const ids = await store.makeIds(1 + recipients.hooks.length);
    const draft = await draftEvent({ world, ids, content, storeBodies }, incoming, recipients);
    const outcome = await group.submit({ ...item, draft });
    if ('holder' in outcome) await deleteContentsOf(store, storedIds);
    return outcome;
  } catch (error) {
    // Where the outcome is unknown the event may be stored, and needs its bodies.
    const isUnknown = isFailure(error) && error.details.isUnknown === true;
    if (!isUnknown) await deleteContentsOf(store, storedIds).catch(() => {});
    throw error;
  }
}

function commit(dependencies: IntakeDependencies, items: readonly Item[]): Promise<(Outcome | undefined)[]> {
  // The ids of a draft whose bodies are stored cannot change here.
  if (items[0]?.draft !== undefined) return commitDrafts(dependencies, items);
  return retryTaken(() => commitDrafts(dependencies, items));
}

/** With other ids when those of a draft are taken. */
async function retryTaken<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let drafts = 1; ; drafts += 1)
    try {
      return await work();
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

/** The outcomes; undefined for events that are left for the next commit. */
async function commitDrafts(
  dependencies: IntakeDependencies,
  items: readonly Item[],
): Promise<(Outcome | undefined)[]> {
  const { store } = dependencies;
  const outcomes = new Map<Item, Outcome>();
  const drafts = await draftItems(dependencies, items, {
    findRecipients: await readRecipients(store, items),
    outcomes,
  });
  const events = [...drafts.values()].map(({ event }) => event);
  const holders = await storeEvents(store, events);
  for (const [index, [item, { answer }]] of [...drafts].entries())
    outcomes.set(item, toOutcome(answer, holders[index]));
  return items.map((item) => outcomes.get(item));
}

/** For each event undefined, or who holds its key. */
async function storeEvents(store: Store, events: readonly NewEvent[]): Promise<(KeyHolder | undefined)[]> {
  if (events.some(({ key }) => key !== undefined)) return await store.call(commitEvents, events);
  await insertEvents(store, events);
  return [];
}

function toOutcome(answer: EventReceipt, holder: KeyHolder | undefined): Outcome {
  return holder === undefined ? { answer } : { holder };
}

/** Drafts of as many as fit into a commit. */
async function draftItems(
  { store, world }: IntakeDependencies,
  items: readonly Item[],
  { findRecipients, outcomes }: { readonly findRecipients: FindRecipients; readonly outcomes: Map<Item, Outcome> },
): Promise<Map<Item, EventDraft>> {
  const [first] = items;
  // One whose bodies are stored commits alone: with ids that are taken it must not fail others.
  if (first?.draft !== undefined) return new Map([[first, first.draft]]);
  const drafts = new Map<Item, EventDraft>();
  let bytes = 0;
  for (const item of items) {
    if (item.draft !== undefined) continue;
    const recipients = findRecipients(item);
    const count = 1 + recipients.hooks.length;
    const estimate = item.content.length * count;
    if (estimate > MAX_BYTES) outcomes.set(item, { tooLargeFor: recipients });
    if (bytes + estimate > MAX_BYTES) continue;
    const ids = await store.makeIds(count);
    const draft = await draftEvent({ world, ids, content: item.content }, item.incoming, recipients);
    drafts.set(item, draft);
    bytes += draft.bytes;
  }
  return drafts;
}

type FindRecipients = (item: Item) => Recipients;

/** Of events of one kind and repository the hooks are read once. */
async function readRecipients(store: Store, items: readonly Item[]): Promise<(item: Item) => Recipients> {
  const keyOf = ({ incoming: { repository, event } }: Item) => `${repository.id} ${event.kind}`;
  const open = new Map(items.filter((item) => item.recipients === undefined).map((item) => [keyOf(item), item]));
  const read = [...open].map(
    async ([
      key,
      {
        incoming: { repository, event },
      },
    ]) => {
      const wanting = await listHooksWanting(store, repository.id, event.kind);
      return [key, { hooks: wanting }] as const;
    },
  );
  const byKey = new Map<string, Recipients>(await Promise.all(read));
  return (item) => item.recipients ?? byKey.get(keyOf(item)) ?? { hooks: [] };
}

function readReceipt(outcome: Outcome, { content, incoming: { idempotencyKey } }: Item): EventReceipt {
  if ('answer' in outcome) return outcome.answer;
  if ('tooLargeFor' in outcome) throw new Failure('internal', 'Cannot announce the event: it is too large');
  const { holder } = outcome;
  if (holder.fingerprint === fingerprintOf(content)) return JSON.parse(holder.answer) as EventReceipt;
  throw new Failure(
    'conflict',
    `Cannot announce the event: the idempotency key "${idempotencyKey ?? ''}" stands for another one`,
    { field: 'Idempotency-Key', errorCodeName: KEY_USED },
  );
}
