/** Stores the bodies of a large event part by part, so that other events commit in between. */
import { isFailure } from '../../errors.ts';
import { contentStatements, type NewDelivery } from '../delivery/queue/delivery-store.ts';
import { deleteContentsOf } from '../delivery/queue/delivery-sweep-store.ts';
import { findEarlierEvent } from './event-batch-store.ts';
import type { GroupCommit } from './group-commit.ts';
import type { IntakeDependencies, PendingEvent, StoreOutcome } from './pending-event.ts';
import { prepareEvent } from './prepare-event.ts';

export async function storeInParts(
  { store, world }: IntakeDependencies,
  pendingEvent: PendingEvent,
  group: GroupCommit<PendingEvent, StoreOutcome>,
): Promise<StoreOutcome> {
  const { incoming, content, targetHooks = { hooks: [] } } = pendingEvent;
  const { idempotencyKey: key, repository } = incoming;
  const earlier = key && (await findEarlierEvent(store, repository.id, { key, nowMs: world.nowMs() }));
  if (earlier) return { earlier };
  const storedIds: number[] = [];
  const storeBodies = async (deliveries: readonly NewDelivery[]): Promise<void> => {
    await store.writeAll(contentStatements(deliveries));
    for (const { id, body } of deliveries) if (!('storedBytes' in body)) storedIds.push(id);
  };
  try {
    const ids = await store.makeIds(1 + targetHooks.hooks.length);
    const prepared = await prepareEvent({ world, ids, content, storeBodies }, incoming, targetHooks);
    const outcome = await group.submit({ ...pendingEvent, prepared });
    if ('earlier' in outcome) await deleteContentsOf(store, storedIds);
    return outcome;
  } catch (error) {
    // If the outcome of the commit is unknown, the event may be stored, so its bodies are kept.
    const isUnknown = isFailure(error) && error.details.isUnknown === true;
    if (!isUnknown) await deleteContentsOf(store, storedIds).catch(() => {});
    throw error;
  }
}
