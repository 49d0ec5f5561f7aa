/**
 * Whose delivery is next: deficit round robin over owner → destination origin → hook, with a cap on what is under way at
 * each level, so that neither a loud owner nor a slow receiver takes the worker from the others. First attempts go before
 * retries, of which every fifth turn is theirs, and which never hold more than three quarters of the worker.
 *
 * Whoever is at its cap is taken out of its ring and put back when something of it ends, so that a choice costs the same
 * with ten endpoints and with ten thousand. Values only: no clock, no input or output.
 */
export interface Caps {
  readonly worker: number;
  readonly owner: number;
  readonly origin: number;
  readonly hook: number;
}

export const CAPS: Caps = { worker: 256, owner: 32, origin: 8, hook: 4 };

const RETRY_EVERY = 5;
const RETRY_SHARE = 0.75;
/** A turn is worth one small delivery; large bodies wait for several turns. */
const COST_BYTES = 16_384;
const QUANTUM = 1;

export type Lane = 'first' | 'retry';
const LANES: readonly Lane[] = ['first', 'retry'];

/** One delivery that waits to be sent. */
export interface Job {
  readonly id: number;
  readonly hookId: number;
  readonly origin: string;
  readonly ownerId: string;
  readonly lane: Lane;
  readonly bodyBytes: number;
}

export interface SchedulerOptions {
  readonly caps: Caps;
  /** Below the cap where a breaker says so; asked at every choice. */
  readonly allowedOfOrigin?: (origin: string) => number;
  readonly allowedOfHook?: (hookId: number) => number;
}

export interface Scheduler<J extends Job> {
  add(job: J): void;
  /** The next to send, which counts as under way from now on. */
  readonly next: () => J | undefined;
  /** Frees the places of a job that `next` gave. */
  finish(job: J): void;
  /** Puts back what was out because of its breaker. */
  recheck(origin: string, hookId: number): void;
  /** Forgets what waits for a hook. */
  drop(hookId: number): J[];
  countWaiting(hookId: number, lane: Lane): number;
  readonly underWay: number;
  readonly waiting: number;
}

type Level = 'root' | 'owner' | 'origin' | 'hook';
type Key = string | number;

/** What is under way of one owner, origin or hook, whichever lane it came by. */
interface Counter<J> {
  underWay: number;
  /** Nodes that are out of their ring until something of it ends. */
  readonly parked: Set<Node<J>>;
}

interface Node<J> {
  readonly level: Level;
  readonly key: Key;
  readonly parent: Node<J> | undefined;
  readonly children: Map<Key, Node<J>>;
  /** The children whose turn may come; the first is next. */
  readonly ring: Set<Node<J>>;
  /** Of a hook. */
  readonly jobs: J[];
  deficit: number;
}

export function createScheduler<J extends Job>(options: SchedulerOptions): Scheduler<J> {
  const { caps } = options;
  const roots: Record<Lane, Node<J>> = { first: createNode<J>('root', ''), retry: createNode<J>('root', '') };
  const hookNodes: Record<Lane, Map<number, Node<J>>> = { first: new Map(), retry: new Map() };
  const counters: Record<Level, Map<Key, Counter<J>>> = {
    root: new Map(),
    owner: new Map(),
    origin: new Map(),
    hook: new Map(),
  };
  const laneUnderWay: Record<Lane, number> = { first: 0, retry: 0 };
  let waiting = 0;
  let turn = 0;

  const limitOf = (node: Node<J>): number => {
    if (node.level === 'owner') return caps.owner;
    if (node.level === 'origin')
      return Math.min(caps.origin, options.allowedOfOrigin?.(String(node.key)) ?? caps.origin);
    return Math.min(caps.hook, options.allowedOfHook?.(Number(node.key)) ?? caps.hook);
  };
  const counterOf = ({ level, key }: Node<J>): Counter<J> | undefined => counters[level].get(key);
  const ensureCounter = (level: Level, key: Key): Counter<J> => {
    const found = counters[level].get(key);
    if (found !== undefined) return found;
    const counter: Counter<J> = { underWay: 0, parked: new Set() };
    counters[level].set(key, counter);
    return counter;
  };
  const forgetWhenIdle = (level: Level, key: Key): void => {
    const counter = counters[level].get(key);
    if (counter?.underWay === 0 && counter.parked.size === 0) counters[level].delete(key);
  };
  const canStart = (node: Node<J>): boolean => (counterOf(node)?.underWay ?? 0) < limitOf(node);

  const park = (node: Node<J>): void => {
    node.parent?.ring.delete(node);
    ensureCounter(node.level, node.key).parked.add(node);
  };
  const unpark = (level: Level, key: Key): void => {
    const counter = counters[level].get(key);
    if (counter === undefined) return;
    const parked = [...counter.parked];
    counter.parked.clear();
    forgetWhenIdle(level, key);
    for (const node of parked) attach(node);
  };
  const isParked = (node: Node<J>): boolean => counterOf(node)?.parked.has(node) ?? false;
  const attach = (node: Node<J>): void => {
    if (node.parent === undefined || isParked(node)) return;
    node.parent.ring.add(node);
    attach(node.parent);
  };
  const removeWhenEmpty = (node: Node<J>): void => {
    if (node.parent === undefined || node.jobs.length > 0 || node.children.size > 0) return;
    counterOf(node)?.parked.delete(node);
    forgetWhenIdle(node.level, node.key);
    node.parent.ring.delete(node);
    node.parent.children.delete(node.key);
    removeWhenEmpty(node.parent);
  };

  const pick = (node: Node<J>): J | undefined => {
    if (node.level === 'hook') return node.jobs.shift();
    for (const child of node.ring) {
      // A set goes on to what is added behind while it is walked: this is the turning of the ring.
      if (!canStart(child)) {
        park(child);
        continue;
      }
      if (child.deficit <= 0) {
        child.deficit += QUANTUM;
        if (child.deficit <= 0) {
          moveToEnd(node.ring, child);
          continue;
        }
      }
      const job = pick(child);
      if (job === undefined) {
        node.ring.delete(child);
        continue;
      }
      child.deficit -= costOf(job);
      if (child.deficit <= 0) moveToEnd(node.ring, child);
      return job;
    }
    return undefined;
  };

  const pickFrom = (lane: Lane): J | undefined => {
    if (lane === 'retry' && laneUnderWay.retry >= Math.max(1, Math.floor(caps.worker * RETRY_SHARE))) return undefined;
    return pick(roots[lane]);
  };

  const count = (job: J, change: 1 | -1): void => {
    laneUnderWay[job.lane] += change;
    ensureCounter('owner', job.ownerId).underWay += change;
    ensureCounter('origin', job.origin).underWay += change;
    ensureCounter('hook', job.hookId).underWay += change;
  };

  const start = (job: J): J => {
    waiting -= 1;
    count(job, 1);
    forget(job.lane, job.hookId);
    return job;
  };
  const forget = (lane: Lane, hookId: number): void => {
    const node = hookNodes[lane].get(hookId);
    if (node === undefined || node.jobs.length > 0) return;
    hookNodes[lane].delete(hookId);
    removeWhenEmpty(node);
  };

  return {
    add: (job) => {
      const owner = ensureChild(roots[job.lane], 'owner', job.ownerId);
      const node = ensureChild(ensureChild(owner, 'origin', job.origin), 'hook', job.hookId);
      node.jobs.push(job);
      hookNodes[job.lane].set(job.hookId, node);
      waiting += 1;
      attach(node);
    },
    next: () => {
      if (laneUnderWay.first + laneUnderWay.retry >= caps.worker) return undefined;
      const [preferred, other]: Lane[] = turn === 0 ? ['retry', 'first'] : ['first', 'retry'];
      const job = pickFrom(preferred!) ?? pickFrom(other!);
      if (job === undefined) return undefined;
      turn = (turn + 1) % RETRY_EVERY;
      return start(job);
    },
    finish: (job) => {
      count(job, -1);
      unpark('owner', job.ownerId);
      unpark('origin', job.origin);
      unpark('hook', job.hookId);
    },
    recheck: (origin, hookId) => {
      unpark('origin', origin);
      unpark('hook', hookId);
    },
    drop: (hookId) =>
      LANES.flatMap((lane) => {
        const jobs = hookNodes[lane].get(hookId)?.jobs.splice(0) ?? [];
        waiting -= jobs.length;
        forget(lane, hookId);
        return jobs;
      }),
    countWaiting: (hookId, lane) => hookNodes[lane].get(hookId)?.jobs.length ?? 0,
    get underWay() {
      return laneUnderWay.first + laneUnderWay.retry;
    },
    get waiting() {
      return waiting;
    },
  };
}

function createNode<J>(level: Level, key: Key, parent?: Node<J>): Node<J> {
  return { level, key, parent, children: new Map(), ring: new Set(), jobs: [], deficit: 0 };
}

function ensureChild<J>(parent: Node<J>, level: Level, key: Key): Node<J> {
  const found = parent.children.get(key);
  if (found !== undefined) return found;
  const child = createNode(level, key, parent);
  parent.children.set(key, child);
  return child;
}

function costOf(job: Job): number {
  return 1 + Math.floor(job.bodyBytes / COST_BYTES);
}

function moveToEnd<T>(ring: Set<T>, item: T): void {
  ring.delete(item);
  ring.add(item);
}
