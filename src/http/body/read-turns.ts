/** All bodies together have this many reads of 64 KiB in a turn. With many more, other calls wait for copies and for the collector. */
const READS_IN_A_TURN = 4;

export interface ReadTurns {
  /** Calls back in a later turn of the event loop, when a body of this network may be read again. */
  wait(network: string, goOn: () => void): void;
}

/**
 * A turn of the event loop reads from each socket that has something. Of hundreds of large bodies that is tens of megabytes, which
 * would hold up all other calls. So a body is read once, and waits for its turn then. Networks have turns, and in each network
 * its bodies.
 */
export function createReadTurns(): ReadTurns {
  /** The reads that wait, by network. The first network is the next, and none is empty. */
  const waiting = new Map<string, (() => void)[]>();
  let isScheduled = false;

  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(run);
  }

  function takeNext(): (() => void) | undefined {
    for (const [network, bodies] of waiting) {
      const goOn = bodies.shift();
      waiting.delete(network);
      if (bodies.length > 0) waiting.set(network, bodies);
      return goOn;
    }
    return undefined;
  }

  function run(): void {
    // What waits again has its turn later.
    const next = Array.from({ length: READS_IN_A_TURN }, takeNext);
    isScheduled = false;
    if (waiting.size > 0) schedule();
    for (const goOn of next) goOn?.();
  }

  return {
    wait(network, goOn) {
      const bodies = waiting.get(network);
      if (bodies === undefined) waiting.set(network, [goOn]);
      else bodies.push(goOn);
      schedule();
    },
  };
}
