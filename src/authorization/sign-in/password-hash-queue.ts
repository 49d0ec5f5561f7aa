/**
 * Hashing a password takes a thread and 19 MiB for some 25 ms, and anyone may ask for it. So few are hashed at a time and
 * few wait. Callers take turns; when the queue is full, the caller with the most waiting requests loses its newest. Callers
 * that have proved who they are (a session, a known device) have every other turn.
 */
import { availableParallelism } from 'node:os';
import { Failure, isFailure } from '../../errors.ts';

export interface HashCaller {
  /** A network, a device or a session: what takes one turn. */
  readonly key: string;
  readonly isKnown: boolean;
}

export interface HashQueue {
  /** Throws `unavailable` when no place is left for the caller. Nothing is taken. */
  check(caller: HashCaller): void;
  /** Throws `unavailable` when no place is left, or when another caller needs the place. */
  run<T>(caller: HashCaller, work: () => Promise<T>): Promise<T>;
}

export interface HashQueueLimits {
  readonly running: number;
  readonly waiting: number;
  readonly waitingOfOne: number;
}

interface Entry {
  readonly start: () => void;
  readonly refuse: (error: Failure) => void;
}

interface Line {
  readonly caller: HashCaller;
  readonly entries: Entry[];
}

/** Node has four threads for such work; one is left for files and names. */
const LIMITS: HashQueueLimits = { running: Math.min(3, availableParallelism()), waiting: 64, waitingOfOne: 8 };
const RETRY_AFTER_SECONDS = 2;

function refuseBusy(): Failure {
  return new Failure('unavailable', 'Cannot check a password right now: too many are being checked', {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    isBusy: true,
  });
}

/** Whether a password was refused without a look at it. */
export function isBusy(error: unknown): error is Failure {
  return isFailure(error) && error.details.isBusy === true;
}

export function createHashQueue(limits: HashQueueLimits = LIMITS): HashQueue {
  /** By key, the next caller first. */
  const lines = new Map<string, Line>();
  let waiting = 0;
  let running = 0;
  /** Every other place goes to known callers first, so that they do not shut strangers out either. */
  let prefersKnown = true;

  const countOf = ({ key }: HashCaller) => lines.get(key)?.entries.length ?? 0;

  const findGreediestOf = (caller: HashCaller) => findGreediest(lines.values(), caller, countOf(caller));

  function check(caller: HashCaller): void {
    if (running < limits.running) return;
    if (countOf(caller) >= limits.waitingOfOne) throw refuseBusy();
    if (waiting >= limits.waiting && findGreediestOf(caller) === undefined) throw refuseBusy();
  }

  function add(caller: HashCaller, entry: Entry): void {
    if (waiting >= limits.waiting) dropNewest(findGreediestOf(caller));
    const line = lines.get(caller.key) ?? { caller, entries: [] };
    lines.set(caller.key, line);
    line.entries.push(entry);
    waiting += 1;
  }

  function dropNewest(line: Line | undefined): void {
    const entry = line?.entries.pop();
    if (line === undefined || entry === undefined) return;
    if (line.entries.length === 0) lines.delete(line.caller.key);
    waiting -= 1;
    entry.refuse(refuseBusy());
  }

  function startNext(): void {
    running -= 1;
    const all = [...lines.values()];
    const line = (prefersKnown ? all.find(({ caller }) => caller.isKnown) : undefined) ?? all[0];
    prefersKnown = !prefersKnown;
    const entry = line?.entries.shift();
    if (line === undefined || entry === undefined) return;
    waiting -= 1;
    // Behind all others, if it has more.
    lines.delete(line.caller.key);
    if (line.entries.length > 0) lines.set(line.caller.key, line);
    running += 1;
    entry.start();
  }

  async function waitForTurn(caller: HashCaller): Promise<void> {
    check(caller);
    if (running < limits.running) running += 1;
    else await new Promise<void>((start, refuse) => add(caller, { start, refuse }));
  }

  return {
    check,
    run: async (caller, work) => {
      await waitForTurn(caller);
      try {
        return await work();
      } finally {
        startNext();
      }
    },
  };
}

/** The caller whose newest entry makes room for one more of `caller`; undefined when no caller has more entries. */
function findGreediest(lines: Iterable<Line>, caller: HashCaller, waiting: number): Line | undefined {
  const weigh = ({ caller: { isKnown }, entries }: Line) => entries.length + (isKnown ? 0 : 0.5);
  const greediest = [...lines].reduce((one, other) => (weigh(other) > weigh(one) ? other : one));
  const own = waiting + 1 + (caller.isKnown ? 0 : 0.5);
  return weigh(greediest) > own ? greediest : undefined;
}
