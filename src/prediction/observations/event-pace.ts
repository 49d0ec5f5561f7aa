/** Yields to calls between events, so that learning from a large report delays no prediction. */

/** Approximate microseconds of work in each turn of the event loop. */
const MAX_COST = 300;

/**
 * Approximate microseconds: to read an event, to finish one report after its commit, and to learn from a dispatch or a sample. A
 * dated dispatch is forecast as of an earlier moment.
 */
export const PACE_COST = { read: 5, report: 20, dispatch: 15, datedDispatch: 60, sample: 40 } as const;

/**
 * Lets calls through between events: one commit brings events of many reports at once, and learning from all of them in one turn
 * of the event loop would make every call wait. Returns undefined while this turn has time left.
 */
export type EventPace = (cost: number) => Promise<void> | undefined;

export function createEventPace(): EventPace {
  let left = MAX_COST;
  /** First come, first served. Each is woken once, since hundreds may wait after a commit. */
  let waiting: Waiter[] = [];
  const startTurn = (): void => {
    left = MAX_COST;
    let next = 0;
    for (; next < waiting.length && left > 0; next++) {
      const { cost, goOn } = waiting[next]!;
      left -= cost;
      goOn();
    }
    waiting = waiting.slice(next);
    if (waiting.length > 0) setImmediate(startTurn);
  };
  return (cost) => {
    if (left > 0 && waiting.length === 0) {
      left -= cost;
      return undefined;
    }
    if (waiting.length === 0) setImmediate(startTurn);
    return new Promise((goOn) => waiting.push({ cost, goOn }));
  };
}

interface Waiter {
  readonly cost: number;
  readonly goOn: () => void;
}
