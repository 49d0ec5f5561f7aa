/** Chooses the event that tests a webhook, among the kinds that it is subscribed to. */
import { EVENT_KINDS, type EventKind } from './event-kind.ts';

export const TEST_EVENTS = [...EVENT_KINDS, 'notice'] as const;

/** `notice`: an issue such as the service opens when something needs attention. */
export type TestEvent = (typeof TEST_EVENTS)[number];

export interface Subscriptions {
  readonly events: Readonly<Record<EventKind, boolean>>;
  /** Whether the webhook belongs to the repository whose webhooks get notices. */
  readonly hasNotices: boolean;
}

/** The events that can be sent; the first is the default. A webhook without a subscription can be tested with a push. */
export function listTestEvents({ events, hasNotices }: Subscriptions): readonly [TestEvent, ...TestEvent[]] {
  const [first, ...others] = EVENT_KINDS.filter((kind) => events[kind]);
  if (first === undefined) return ['push'];
  return [first, ...others, ...(hasNotices && events.issue ? (['notice'] as const) : [])];
}
