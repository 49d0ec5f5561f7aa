/** Ends an attempt at its deadline (timeout), however slowly bytes arrive. */

export class DeadlinePassed extends Error {}

/** The end of the time of an attempt, whose stages wait for it one after the other. An `AbortSignal` for each attempt costs more. */
export interface AttemptDeadline {
  readonly hasPassed: boolean;
  /** `end` ends the stage that begins now; it takes the place of that of the stage before. Called at once when the time is over. */
  onPassed(end: (reason: Error) => void): void;
  /** The stage has ended by itself. */
  endStage(): void;
  clear(): void;
}

/**
 * The time ends once the event loop has read what had arrived by then: a process that did not run for a while finds its timers over
 * and the responses of receivers in its sockets, and the timers are called first.
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

/** The earlier of two deadlines. The stages end at both; only the clock of `one` is cleared with it. */
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
