/** About 15 µs each: together less than half a millisecond. */
const EVENTS_A_TURN = 24;

/**
 * Lets calls through between events: one commit brings events of many reports at once, and learning from all of them in
 * one turn of the event loop would let every call wait. Undefined while this turn has room.
 */
export type EventPace = () => Promise<void> | undefined;

export function createEventPace(): EventPace {
  let left = EVENTS_A_TURN;
  let nextTurn: Promise<void> | undefined;
  const startTurn = (resolve: () => void): void => {
    left = EVENTS_A_TURN;
    nextTurn = undefined;
    resolve();
  };
  const waitForTurn = async (): Promise<void> => {
    while (left <= 0) {
      nextTurn ??= new Promise((resolve) => setImmediate(startTurn, resolve));
      await nextTurn;
    }
    left -= 1;
  };
  return () => {
    if (left <= 0) return waitForTurn();
    left -= 1;
    return undefined;
  };
}
