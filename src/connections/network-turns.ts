/** Runs costly work for few clients in each turn of the event loop, with turns among networks. */

export interface NetworkTurns {
  /** Calls back in a later turn of the event loop, when it is this network's turn. One that has gone by then is passed over. */
  wait(network: string, goOn: () => void, hasGone?: () => boolean): void;
}

/**
 * Work of which hundreds of clients may ask at once, and which cannot be interrupted: few of them a turn of the event loop, so that all
 * other calls go on in between. Networks have turns, and in each network those that wait.
 */
export function createNetworkTurns(inATurn: number): NetworkTurns {
  /** The clients that wait, by network. The first network is the next, and none is empty. */
  const waiting = new Map<string, Waiter[]>();
  let isScheduled = false;

  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(run);
  }

  function takeNext(): Waiter | undefined {
    for (const [network, ofNetwork] of waiting) {
      const next = takePresent(ofNetwork);
      waiting.delete(network);
      if (ofNetwork.length > 0) waiting.set(network, ofNetwork);
      if (next !== undefined) return next;
    }
    return undefined;
  }

  function run(): void {
    // A client that waits again has its turn later.
    const next = Array.from({ length: inATurn }, takeNext);
    isScheduled = false;
    if (waiting.size > 0) schedule();
    for (const waiter of next) waiter?.goOn();
  }

  return {
    wait(network, goOn, hasGone = () => false) {
      const ofNetwork = waiting.get(network);
      if (ofNetwork === undefined) waiting.set(network, [{ goOn, hasGone }]);
      else ofNetwork.push({ goOn, hasGone });
      schedule();
    },
  };
}

interface Waiter {
  readonly goOn: () => void;
  readonly hasGone: () => boolean;
}

function takePresent(waiting: Waiter[]): Waiter | undefined {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) if (!next.hasGone()) return next;
  return undefined;
}
