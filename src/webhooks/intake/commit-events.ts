/** Commits as many submitted events as fit into one transaction. */
import type { Store } from '../../database/store.ts';
import { isFailure } from '../../errors.ts';
import type { CommittedDelivery } from '../delivery/queue/committed-delivery.ts';
import type { EnqueueVersions, NewDelivery } from '../delivery/queue/delivery-store.ts';
import { listSubscribedHooks } from '../hooks/target-hook-store.ts';
import {
  commitEvents,
  type EarlierEvent,
  insertEvents,
  type NewEvent,
  type StoredEvents,
} from './event-batch-store.ts';
import type { EventReceipt } from './event-receipt.ts';
import type { IntakeDependencies, PendingEvent, StoreOutcome } from './pending-event.ts';
import { type PreparedEvent, prepareEvent, type TargetHooks } from './prepare-event.ts';

/**
 * The approximate size of one commit, in bytes of events and bodies. Before its bodies are rendered, an event is counted with one body of
 * its own size for each webhook; rendered bodies are larger. If an event counts more than this limit, its bodies are stored before it in
 * parts of this size: a megabyte to fifty webhooks is fifty megabytes, and other events would wait for such a commit.
 */
export const MAX_BYTES = 1024 * 1024;
/** If the commit of an event took longer, the worker reads its deliveries again, with their hooks as they are then. */
const MAX_HOOK_AGE_MS = 250;

/** Stores as many events as fit into one commit. The outcome is undefined for events that are left for the next commit. */
export async function commitPrepared(
  dependencies: IntakeDependencies,
  pendingEvents: readonly PendingEvent[],
): Promise<(StoreOutcome | undefined)[]> {
  const { store, world } = dependencies;
  const startedMs = world.monotonicMs();
  const outcomes = new Map<PendingEvent, StoreOutcome>();
  const findTargetHooks = await readTargetHooks(store, pendingEvents);
  const prepared = await prepareEvents(dependencies, pendingEvents, { findTargetHooks, outcomes });
  const events = [...prepared.values()].map(({ event }) => event);
  const { earlier, versions } = await storeEvents(store, events);
  const committed = [...prepared.values()].flatMap((one, index) => (earlier[index] === undefined ? one.committed : []));
  // A hook that was read longer ago may have changed.
  const isFresh = world.monotonicMs() - startedMs < MAX_HOOK_AGE_MS;
  const given = isFresh ? committed : committed.map((one) => ({ ...one, content: undefined }));
  giveToWorker(dependencies, given, versions);
  for (const [index, [pendingEvent, { receipt }]] of [...prepared].entries())
    outcomes.set(pendingEvent, toOutcome(receipt, earlier[index]));
  return pendingEvents.map((pendingEvent) => outcomes.get(pendingEvent));
}

/** Hides errors from the senders: their events are committed, and would be sent and stored again. */
function giveToWorker(
  { log, onCommitted }: IntakeDependencies,
  committed: readonly CommittedDelivery[],
  versions: EnqueueVersions,
): void {
  try {
    onCommitted(committed, versions);
  } catch (error) {
    log.error({ err: error }, 'Cannot give new deliveries to the worker; it reads them with its next scan');
  }
}

/** Tries one insert for all events. If a key exists already, a second transaction decides for each event. */
async function storeEvents(store: Store, events: readonly NewEvent[]): Promise<StoredEvents> {
  try {
    return await insertEvents(store, events);
  } catch (error) {
    const hasKeys = events.some(({ key }) => key !== undefined);
    if (!hasKeys || !isDuplicate(error)) throw error;
    return await store.call(commitEvents, events.map(detachBodies));
  }
}

/** Whether the store has a key or an id already. */
export function isDuplicate(error: unknown): boolean {
  return isFailure(error) && error.details.isDuplicate === true;
}

/** Copies small Buffers, which are views on a shared pool: the whole pool would be cloned with the input of the procedure. */
function detachBodies(event: NewEvent): NewEvent {
  return { ...event, deliveries: event.deliveries.map((one) => ({ ...one, body: detach(one.body) })) };
}

function detach(body: NewDelivery['body']): NewDelivery['body'] {
  if ('storedBytes' in body || body.byteLength === body.buffer.byteLength) return body;
  return new Uint8Array(body);
}

function toOutcome(receipt: EventReceipt, earlier: EarlierEvent | undefined): StoreOutcome {
  return earlier === undefined ? { receipt } : { earlier };
}

interface Preparation {
  readonly findTargetHooks: FindTargetHooks;
  /** Receives the outcomes of events whose bodies do not fit into one commit. */
  readonly outcomes: Map<PendingEvent, StoreOutcome>;
}

/** Prepares as many events as fit into one commit. */
async function prepareEvents(
  { store, world }: IntakeDependencies,
  pendingEvents: readonly PendingEvent[],
  { findTargetHooks, outcomes }: Preparation,
): Promise<Map<PendingEvent, PreparedEvent>> {
  const [first] = pendingEvents;
  // An event whose bodies are stored already commits alone, so that others do not fail if its ids are taken.
  if (first?.prepared !== undefined) return new Map([[first, first.prepared]]);
  const prepared = new Map<PendingEvent, PreparedEvent>();
  let bytes = 0;
  for (const pendingEvent of pendingEvents) {
    if (pendingEvent.prepared !== undefined) continue;
    const targetHooks = findTargetHooks(pendingEvent);
    const count = 1 + targetHooks.hooks.length;
    const estimate = Buffer.byteLength(pendingEvent.content) * count;
    if (estimate > MAX_BYTES) outcomes.set(pendingEvent, { needsPartsFor: targetHooks });
    if (bytes + estimate > MAX_BYTES) continue;
    const ids = await store.makeIds(count);
    const event = await prepareEvent({ world, ids, content: pendingEvent.content }, pendingEvent.incoming, targetHooks);
    prepared.set(pendingEvent, event);
    bytes += event.bytes;
  }
  return prepared;
}

type FindTargetHooks = (pendingEvent: PendingEvent) => TargetHooks;

/** Reads the hooks of each kind and repository once. */
async function readTargetHooks(
  store: Store,
  pendingEvents: readonly PendingEvent[],
): Promise<(pendingEvent: PendingEvent) => TargetHooks> {
  const keyOf = ({ incoming: { repository, event } }: PendingEvent) => `${repository.id} ${event.kind}`;
  const withoutHooks = pendingEvents.filter(({ targetHooks }) => targetHooks === undefined);
  const open = new Map(withoutHooks.map((pendingEvent) => [keyOf(pendingEvent), pendingEvent]));
  const read = [...open].map(async ([key, { incoming }]) => {
    const hooks = await listSubscribedHooks(store, incoming.repository.id, incoming.event.kind);
    return [key, { hooks }] as const;
  });
  const byKey = new Map<string, TargetHooks>(await Promise.all(read));
  return (pendingEvent) => pendingEvent.targetHooks ?? byKey.get(keyOf(pendingEvent)) ?? { hooks: [] };
}
