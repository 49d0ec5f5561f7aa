/** Runs costly work for few clients in each turn of the event loop; networks take turns. */

export interface NetworkTurns {
  /** Calls back in a later turn of the event loop, when it is this network's turn. Clients that have left by then are skipped. */
  wait(network: string, goOn: () => void, hasGone?: () => boolean): void;
}

/**
 * Work that hundreds of clients may request at once and that cannot be interrupted: each turn of the event loop does it for few of them,
 * so that all other calls continue in between. Networks take turns (round robin), and so do the clients of each network.
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
