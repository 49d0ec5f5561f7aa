/** Publishes an event or a test of it; the intake gives the deliveries to the workers of this process. */
import type { StoredHook } from '../hooks/hook-store.ts';
import type { EventReceipt } from '../intake/event-receipt.ts';
import type { IncomingEvent } from '../intake/prepare-event.ts';
import type { Management } from './management.ts';

/** The caller sends a test; the workers take it over only if the caller ends before that. */
const TEST_GRACE_MS = 30_000;

/** The same key with the same event gets the first answer again and sends nothing; with another event it is refused. */
export async function publishEvent(dependencies: Management, incoming: IncomingEvent): Promise<EventReceipt> {
  return await dependencies.intake.accept(incoming);
}

/** Stores one delivery to one hook, whatever it subscribed to; the caller sends it. */
export async function publishTest(
  dependencies: Management,
  incoming: IncomingEvent,
  hook: StoredHook,
): Promise<number> {
  const targetHooks = { hooks: [hook], dueAtMs: dependencies.world.nowMs() + TEST_GRACE_MS };
  const answer = await dependencies.intake.accept(incoming, targetHooks);
  return answer.deliveries[0]?.id ?? 0;
}
