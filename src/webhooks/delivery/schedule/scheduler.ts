/**
 * Whose delivery is next: deficit round robin over owner → destination origin → hook, with a limit on what is under way
 * at each level (`slots.ts`), so that neither a loud owner nor a slow receiver takes the worker from the others. First
 * attempts go before retries, of which every fifth turn is theirs, and which never hold more than three quarters of the
 * worker.
 *
 * A node at its limit is parked: taken out of its ring and put back when a place for it may have become free, so that a
 * choice costs the same with ten endpoints and with ten thousand. Values only: no clock, no input or output.
 */
import { createSlots, type SlotHolder, type SlotOptions } from './slots.ts';

const RETRY_EVERY = 5;
const RETRY_SHARE = 0.75;
/** A turn is worth one small delivery; large bodies wait for several turns. */
const COST_BYTES = 16_384;
const QUANTUM = 1;

export type Lane = 'first' | 'retry';
const LANES: readonly Lane[] = ['first', 'retry'];

/** One delivery that waits to be sent. */
export interface Job extends SlotHolder {
  readonly id: number;
  readonly lane: Lane;
  readonly bodyBytes: number;
}

export interface Scheduler<J extends Job> {
  add(job: J): void;
  /** The next to send, which counts as under way from now on. */
  readonly next: () => J | undefined;
  /** Frees the places of a job that `next` gave. */
  finish(job: J): void;
  /** Puts back what was parked because of a breaker. */
  recheck(origin: string, hookId: number): void;
  /** Forgets what waits for a hook. */
  drop(hookId: number): J[];
  countWaiting(hookId: number, lane: Lane): number;
  readonly underWay: number;
  readonly waiting: number;
}

type Level = 'root' | 'owner' | 'origin' | 'hook';
type Key = string | number;

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

export function createScheduler<J extends Job>(options: SlotOptions): Scheduler<J> {
  const slots = createSlots(options);
  const roots: Record<Lane, Node<J>> = { first: createNode<J>('root', ''), retry: createNode<J>('root', '') };
  const hookNodes: Record<Lane, Map<number, Node<J>>> = { first: new Map(), retry: new Map() };
  const parking = createParking<J>();
  const maxRetries = Math.max(1, Math.floor(options.caps.worker * RETRY_SHARE));
  let retriesUnderWay = 0;
  let waiting = 0;
  let turn = 0;

  const canStart = ({ level, key, parent }: Node<J>): boolean => {
    if (level === 'owner') return slots.hasRoomForOwner(String(key));
    if (level === 'origin') return slots.hasRoomAtOrigin(String(key), String(parent?.key));
    return slots.hasRoomForHook(Number(key));
  };

  const pick = (node: Node<J>): J | undefined => {
    if (node.level === 'hook') return node.jobs.shift();
    for (const child of node.ring) {
      // A set goes on to what is added behind while it is walked: this is the turning of the ring.
      if (!canStart(child)) {
        parking.park(child);
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

  const pickFrom = (lane: Lane): J | undefined =>
    lane === 'retry' && retriesUnderWay >= maxRetries ? undefined : pick(roots[lane]);

  const start = (job: J): J => {
    waiting -= 1;
    slots.take(job);
    if (job.lane === 'retry') retriesUnderWay += 1;
    forget(job.lane, job.hookId);
    return job;
  };
  const forget = (lane: Lane, hookId: number): void => {
    const node = hookNodes[lane].get(hookId);
    if (node === undefined || node.jobs.length > 0) return;
    hookNodes[lane].delete(hookId);
    parking.removeWhenEmpty(node);
  };

  return {
    add: (job) => {
      const owner = ensureChild(roots[job.lane], 'owner', job.ownerId);
      const node = ensureChild(ensureChild(owner, 'origin', job.origin), 'hook', job.hookId);
      node.jobs.push(job);
      hookNodes[job.lane].set(job.hookId, node);
      waiting += 1;
      parking.attach(node);
    },
    next: () => {
      if (slots.underWay >= options.caps.worker) return undefined;
      const [preferred, other]: Lane[] = turn === 0 ? ['retry', 'first'] : ['first', 'retry'];
      const job = pickFrom(preferred!) ?? pickFrom(other!);
      if (job === undefined) return undefined;
      turn = (turn + 1) % RETRY_EVERY;
      return start(job);
    },
    finish: (job) => {
      slots.free(job);
      if (job.lane === 'retry') retriesUnderWay -= 1;
      // A place of the worker is free again, so any owner may have room.
      parking.unparkAll('owner');
      parking.unpark('origin', job.origin);
      parking.unpark('hook', job.hookId);
    },
    recheck: (origin, hookId) => {
      parking.unpark('origin', origin);
      parking.unpark('hook', hookId);
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
      return slots.underWay;
    },
    get waiting() {
      return waiting;
    },
  };
}

/** The nodes that are out of their rings, by what they wait for. */
function createParking<J>() {
  const parked: Record<Level, Map<Key, Set<Node<J>>>> = {
    root: new Map(),
    owner: new Map(),
    origin: new Map(),
    hook: new Map(),
  };
  const attach = (node: Node<J>): void => {
    if (node.parent === undefined || parked[node.level].get(node.key)?.has(node)) return;
    node.parent.ring.add(node);
    attach(node.parent);
  };
  const unpark = (level: Level, key: Key): void => {
    const nodes = parked[level].get(key);
    if (nodes === undefined) return;
    parked[level].delete(key);
    for (const node of nodes) attach(node);
  };
  const remove = (node: Node<J>): void => {
    const nodes = parked[node.level].get(node.key);
    nodes?.delete(node);
    if (nodes?.size === 0) parked[node.level].delete(node.key);
  };
  const removeWhenEmpty = (node: Node<J>): void => {
    if (node.parent === undefined || node.jobs.length > 0 || node.children.size > 0) return;
    remove(node);
    node.parent.ring.delete(node);
    node.parent.children.delete(node.key);
    removeWhenEmpty(node.parent);
  };
  return {
    park: (node: Node<J>): void => {
      node.parent?.ring.delete(node);
      const nodes = parked[node.level].get(node.key) ?? new Set();
      parked[node.level].set(node.key, nodes.add(node));
    },
    unpark,
    unparkAll: (level: Level): void => {
      for (const key of parked[level].keys()) unpark(level, key);
    },
    attach,
    removeWhenEmpty,
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
