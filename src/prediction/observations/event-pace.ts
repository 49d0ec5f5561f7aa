/** Yields to calls between events, so that learning from one large report delays no prediction. */

/** Microseconds of work, about, in each turn of the event loop. */
const MAX_COST = 300;

/** Microseconds, about: what one report leaves to do after its commit, and what learning from its events takes. */
export const PACE_COST = { report: 20, dispatch: 15, sample: 40 } as const;

/**
 * Lets calls through between events: one commit brings events of many reports at once, and learning from all of them in
 * one turn of the event loop would let every call wait. Undefined while this turn has room.
 */
export type EventPace = (cost: number) => Promise<void> | undefined;

export function createEventPace(): EventPace {
  let left = MAX_COST;
  let nextTurn: Promise<void> | undefined;
  const startTurn = (resolve: () => void): void => {
    left = MAX_COST;
    nextTurn = undefined;
    resolve();
  };
  const waitForTurn = async (cost: number): Promise<void> => {
    while (left <= 0) {
      nextTurn ??= new Promise((resolve) => setImmediate(startTurn, resolve));
      await nextTurn;
    }
    left -= cost;
  };
  return (cost) => {
    if (left <= 0) return waitForTurn(cost);
    left -= cost;
    return undefined;
  };
}
