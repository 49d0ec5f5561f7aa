/** Publishes an event, or a test event for one webhook; the intake gives the deliveries to the workers of this process. */
import type { StoredHook } from '../hooks/hook-store.ts';
import type { EventReceipt } from '../intake/event-receipt.ts';
import type { IncomingEvent } from '../intake/prepare-event.ts';
import type { Management } from './management.ts';

/** The caller sends a test itself. The workers send it only after this time, if the caller's process ended before. */
const TEST_GRACE_MS = 30_000;

/** Publishes an event. A repetition with the same key gets the first answer and sends nothing; another event with the key is refused. */
export async function publishEvent(dependencies: Management, incoming: IncomingEvent): Promise<EventReceipt> {
  return await dependencies.intake.accept(incoming);
}

/** Stores one delivery to one hook, whatever its subscriptions; the caller sends it. */
export async function publishTest(
  dependencies: Management,
  incoming: IncomingEvent,
  hook: StoredHook,
): Promise<number> {
  const targetHooks = { hooks: [hook], dueAtMs: dependencies.world.nowMs() + TEST_GRACE_MS };
  const answer = await dependencies.intake.accept(incoming, targetHooks);
  return answer.deliveries[0]?.id ?? 0;
}
