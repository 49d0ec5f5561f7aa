/**
 * Limits how many passwords are hashed at a time, round robin by caller, and refuses when too many wait (503). Each hash takes a
 * thread and 19 MiB, so few run or wait at once. When the queue is full, the caller with the most entries loses its newest one to a
 * caller with fewer. Every other turn goes first to authenticated callers (a session) and known ones (a device that signed in before).
 */
import { availableParallelism } from 'node:os';
import { Failure, isFailure } from '../../errors.ts';

export interface HashCaller {
  /** A network, a device or a session; each key has one turn in a round. */
  readonly key: string;
  readonly isKnown: boolean;
}

export interface HashQueue {
  /** Throws `unavailable` if the queue is full for the caller. Does not reserve a place. */
  check(caller: HashCaller): void;
  /** Throws `unavailable` if the queue is full for the caller, or later drops this entry for another caller. */
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

interface CallerQueue {
  readonly caller: HashCaller;
  readonly entries: Entry[];
}

/** Node's thread pool has four threads by default; one is left for files and DNS lookups. */
const LIMITS: HashQueueLimits = { running: Math.min(3, availableParallelism()), waiting: 64, waitingOfOne: 8 };
const RETRY_AFTER_SECONDS = 2;

function refuseBusy(): Failure {
  return new Failure('unavailable', 'Cannot check a password right now: too many passwords are being checked', {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    isBusy: true,
  });
}

/** Whether the error means that a password was not checked because the queue was full. */
export function isBusy(error: unknown): error is Failure {
  return isFailure(error) && error.details.isBusy === true;
}

export function createHashQueue(limits: HashQueueLimits = LIMITS): HashQueue {
  const waiting = createWaitingCallers(limits);
  let running = 0;

  function check(caller: HashCaller): void {
    if (running >= limits.running) waiting.check(caller);
  }

  async function waitForTurn(caller: HashCaller): Promise<void> {
    check(caller);
    if (running < limits.running) running += 1;
    else await new Promise<void>((start, refuse) => waiting.add(caller, { start, refuse }));
  }

  function startNext(): void {
    const next = waiting.take();
    if (next === undefined) running -= 1;
    else next.start();
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

/** Queues the waiting passwords by caller, and decides which one is refused and which one is hashed next. */
function createWaitingCallers(limits: HashQueueLimits) {
  /** The queues of callers by key, in the order of their turns. */
  const queueByCaller = new Map<string, CallerQueue>();
  let waiting = 0;
  /** Only every other turn prefers known callers, so that they do not block strangers. */
  let prefersKnown = true;

  const countOf = ({ key }: HashCaller) => queueByCaller.get(key)?.entries.length ?? 0;

  const findLongestQueueFor = (caller: HashCaller) => findLongestQueue(queueByCaller.values(), caller, countOf(caller));

  function dropNewest(queue: CallerQueue | undefined): void {
    const entry = queue?.entries.pop();
    if (queue === undefined || entry === undefined) return;
    if (queue.entries.length === 0) queueByCaller.delete(queue.caller.key);
    waiting -= 1;
    entry.refuse(refuseBusy());
  }

  return {
    /** Throws if the queue is full for the caller. */
    check(caller: HashCaller): void {
      if (countOf(caller) >= limits.waitingOfOne) throw refuseBusy();
      if (waiting >= limits.waiting && findLongestQueueFor(caller) === undefined) throw refuseBusy();
    },
    add(caller: HashCaller, entry: Entry): void {
      if (waiting >= limits.waiting) dropNewest(findLongestQueueFor(caller));
      const queue = queueByCaller.get(caller.key) ?? { caller, entries: [] };
      queueByCaller.set(caller.key, queue);
      queue.entries.push(entry);
      waiting += 1;
    },
    take(): Entry | undefined {
      const all = [...queueByCaller.values()];
      const queue = (prefersKnown ? all.find(({ caller }) => caller.isKnown) : undefined) ?? all[0];
      prefersKnown = !prefersKnown;
      const entry = queue?.entries.shift();
      if (queue === undefined || entry === undefined) return undefined;
      waiting -= 1;
      // A caller with more entries goes to the end of the round.
      queueByCaller.delete(queue.caller.key);
      if (queue.entries.length > 0) queueByCaller.set(queue.caller.key, queue);
      return entry;
    },
  };
}

/** Finds the queue that drops its newest entry for a new one of `caller`; undefined if no other caller has more entries. */
function findLongestQueue(queues: Iterable<CallerQueue>, caller: HashCaller, waiting: number): CallerQueue | undefined {
  const weigh = ({ caller: { isKnown }, entries }: CallerQueue) => entries.length + (isKnown ? 0 : 0.5);
  const longest = [...queues].reduce((one, other) => (weigh(other) > weigh(one) ? other : one));
  const own = waiting + 1 + (caller.isKnown ? 0 : 0.5);
  return weigh(longest) > own ? longest : undefined;
}
