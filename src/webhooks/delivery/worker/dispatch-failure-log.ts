/** Logs when deliveries cannot be dispatched, such as while the database is away, and when they are dispatched again. */
import { describeError } from '../../../errors.ts';
import type { Log } from '../../../telemetry/log.ts';

export interface DispatchFailureLog {
  /** Logs the first failure of several, not each cycle of an outage. */
  begin(error: unknown): void;
  /** Must be called when a cycle has succeeded. */
  end(): void;
}

export function createDispatchFailureLog(log: Log): DispatchFailureLog {
  let isFailing = false;
  return {
    begin(error) {
      if (!isFailing) log.warn({ reason: describeError(error) }, 'Cannot dispatch deliveries; trying again');
      isFailing = true;
    },
    end() {
      if (isFailing) log.warn('Deliveries are dispatched again');
      isFailing = false;
    },
  };
}
