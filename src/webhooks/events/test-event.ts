/** Chooses the event that tests a webhook, among the kinds that it is subscribed to. */
import { EVENT_KINDS, type EventKind } from './event-kind.ts';

export const TEST_EVENTS = [...EVENT_KINDS, 'notice'] as const;

/** `notice`: an issue as the service opens it when something needs attention. */
export type TestEvent = (typeof TEST_EVENTS)[number];

export interface Subscriptions {
  readonly events: Readonly<Record<EventKind, boolean>>;
  /** The repository of the webhook is the one whose webhooks get the notices. */
  readonly hasNotices: boolean;
}

/** The first is sent when nothing is chosen. A webhook without any subscription can still be tried, with a push. */
export function listTestEvents({ events, hasNotices }: Subscriptions): readonly [TestEvent, ...TestEvent[]] {
  const [first, ...others] = EVENT_KINDS.filter((kind) => events[kind]);
  if (first === undefined) return ['push'];
  return [first, ...others, ...(hasNotices && events.issue ? (['notice'] as const) : [])];
}
