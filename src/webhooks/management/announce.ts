/** Announcing an event: it is stored with its deliveries, then the workers of this process are told. */
import type { Hook } from '../hooks/hook.ts';
import type { Announcement, AnnouncementAnswer } from '../intake/draft-event.ts';
import type { Management } from './management.ts';

/** A test sends by itself; the workers take over only when that did not end. */
const TEST_GRACE_MS = 30_000;

/** The same key with the same event answers as the first time and sends nothing; with another event it is refused. */
export async function announce(parts: Management, announcement: Announcement): Promise<AnnouncementAnswer> {
  const answer = await parts.intake.take(announcement);
  parts.pokeDeliveries(answer.deliveries.map((delivery) => delivery.hook_id));
  return answer;
}

/** One delivery to one hook, whatever it subscribed to; for the caller to send. */
export async function announceTest(parts: Management, announcement: Announcement, hook: Hook): Promise<number> {
  const recipients = { hooks: [hook], dueAtMs: parts.world.nowMs() + TEST_GRACE_MS };
  const answer = await parts.intake.take(announcement, recipients);
  return answer.deliveries[0]?.id ?? 0;
}
