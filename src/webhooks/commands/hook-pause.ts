/** Describes the pause of a webhook for the terminal. */
import type { AnyHook } from '../administration/hook-operations.ts';
import type { PauseReason } from '../delivery/schedule/pause-reason.ts';

const REASONS: Readonly<Record<PauseReason, string>> = {
  failures: 'most of the last attempts failed',
  no_connection: 'no connection to the server can be made',
  retry_after: 'the receiver answered 429 and asked to wait',
};

type Paused = Pick<AnyHook, 'paused_since' | 'paused_until' | 'paused_reason'>;

/** Undefined without a pause. */
export function describePause({ paused_since, paused_until, paused_reason }: Paused): string | undefined {
  if (paused_since === null || paused_reason === null) return undefined;
  return `Paused since ${paused_since} until ${paused_until}: ${REASONS[paused_reason]}. "trivet hook test" does not wait; if the receiver accepts the test, the pause ends and what waits is sent`;
}
