/** The pause of a webhook, in words. */
import type { Pause, PauseReason } from '../delivery/schedule/pause-reason.ts';
import { toOffsetTime } from '../parameters/json-body.ts';

const REASONS: Readonly<Record<PauseReason, string>> = {
  failures: 'most of the last attempts failed',
  no_connection: 'no connection to the server can be made',
  retry_after: 'the receiver answered 429 and asked to wait',
};

export function describePause({ sinceMs, untilMs, reason }: Pause): string {
  return `Paused since ${toOffsetTime(sinceMs)} until ${toOffsetTime(untilMs)}: ${REASONS[reason]}. "trivet hook test" does not wait; if the receiver accepts the test, the pause ends and what waits is sent`;
}
