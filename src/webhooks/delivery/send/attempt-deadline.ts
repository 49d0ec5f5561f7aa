/** Ends an attempt at its deadline (timeout), however slowly bytes arrive. */

export class DeadlinePassed extends Error {}

/** The deadline of an attempt; its stages set in turn what it ends. Cheaper than an `AbortSignal` for each attempt. */
export interface AttemptDeadline {
  readonly hasPassed: boolean;
  /** Sets the function that ends the present stage, in place of that of the stage before. Called at once if the deadline has passed. */
  onPassed(end: (reason: Error) => void): void;
  /** Must be called when the stage has ended by itself. */
  endStage(): void;
  clear(): void;
}

/**
 * The deadline passes only after the event loop has read the data that had arrived by then. In a process that did not run for a while,
 * timers have expired and responses are in the sockets, and the event loop calls timers first.
 */
export function startDeadline(timeMs: number): AttemptDeadline {
  let reason: Error | undefined;
  let endOfStage: ((reason: Error) => void) | undefined;
  let reading: NodeJS.Immediate | undefined;
  const pass = (): void => {
    reason = new DeadlinePassed();
    endOfStage?.(reason);
  };
  const timer = setTimeout(() => {
    reading = setImmediate(pass);
  }, timeMs);
  return {
    get hasPassed() {
      return reason !== undefined;
    },
    onPassed: (end) => {
      endOfStage = end;
      if (reason !== undefined) end(reason);
    },
    endStage: () => {
      endOfStage = undefined;
    },
    clear: () => {
      clearTimeout(timer);
      clearImmediate(reading);
    },
  };
}

/** The earlier of two deadlines: a stage ends at either. `clear()` clears only `one`. */
export function earlierOf(one: AttemptDeadline, other: AttemptDeadline): AttemptDeadline {
  return {
    get hasPassed() {
      return one.hasPassed || other.hasPassed;
    },
    onPassed: (end) => {
      one.onPassed(end);
      other.onPassed(end);
    },
    endStage: () => {
      one.endStage();
      other.endStage();
    },
    clear: () => one.clear(),
  };
}
