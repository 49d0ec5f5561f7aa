/**
 * Takes turns over a tree of owner, origin and hook by deficit round robin (Shreedhar and Varghese, 1995). A node at its limit
 * is skipped: removed from its ring, and put back when a slot for it may have become free. So a choice costs the same with ten hook
 * queues and with ten thousand, also when all of them wait for one receiver. The exception are hooks whose next body is large and waits
 * for memory: all of them are put back when a large body has been sent.
 */
import type { SizedDelivery } from './concurrency-limits.ts';
import { type Waiting, WaitList } from './wait-list.ts';

/** One turn pays for one small delivery; a large body uses up several turns. */
const COST_BYTES = 16_384;
const QUANTUM = 1;

export type Lane = 'first' | 'retry';

/** One delivery that waits to be sent. */
export interface Job extends SizedDelivery {
  readonly id: number;
  readonly lane: Lane;
}

type Level = 'root' | 'owner' | 'origin' | 'hook';
type Key = string | number;

export interface Node<J> extends Waiting {
  readonly level: Level;
  readonly key: Key;
  readonly parent: Node<J> | undefined;
  children: Map<Key, Node<J>>;
  /** The children whose turn may come; the first is next. */
  ring: Set<Node<J>>;
  /** The deliveries of a hook; empty in other nodes. */
  readonly jobs: J[];
  deficit: number;
}

export function createRoot<J>(): Node<J> {
  return createNode('root', '');
}

function createNode<J>(level: Level, key: Key, parent?: Node<J>): Node<J> {
  const waits = { waitsIn: undefined, keepsPlace: false };
  return { level, key, parent, children: new Map(), ring: new Set(), jobs: [], deficit: 0, ...waits };
}

/** The node of the job's hook. */
export function ensureHookNode<J extends Job>(root: Node<J>, { ownerId, origin, hookId }: J): Node<J> {
  const owner = ensureChild(root, 'owner', ownerId);
  return ensureChild(ensureChild(owner, 'origin', origin), 'hook', hookId);
}

function ensureChild<J>(parent: Node<J>, level: Level, key: Key): Node<J> {
  const found = parent.children.get(key);
  if (found !== undefined) return found;
  const child = createNode(level, key, parent);
  parent.children.set(key, child);
  return child;
}

/** Why a node is skipped: the limit of its level, the share of an owner at an origin, or no memory for the next body of a hook. */
export type Obstacle = 'owner' | 'origin' | 'share' | 'hook' | 'body';

/** Nodes that were removed from their rings, by the limit that they wait for. */
export type Skipped<J> = Readonly<Record<Obstacle, Map<Key, WaitList<Node<J>>>>>;

export function createSkipped<J>(): Skipped<J> {
  return { owner: new Map(), origin: new Map(), share: new Map(), hook: new Map(), body: new Map() };
}

/** The one key for nodes that wait for memory, which is shared by the whole worker. */
const BODY_KEY = '';

/** Puts the node and those above it into their rings, unless they are skipped. */
export function attach<J>(node: Node<J>): void {
  if (node.parent === undefined || node.waitsIn !== undefined) return;
  node.parent.ring.add(node);
  attach(node.parent);
}

function skip<J>(skipped: Skipped<J>, node: Node<J>, obstacle: Obstacle): void {
  node.parent?.ring.delete(node);
  const key = obstacle === 'body' ? BODY_KEY : node.key;
  const lists = skipped[obstacle];
  const list = lists.get(key) ?? new WaitList(() => lists.delete(key));
  list.add(node);
  lists.set(key, list);
}

/** Puts back up to `max` of the nodes that have waited longest for this limit. Returns false if no node waits. */
export function resume<J>(
  skipped: Skipped<J>,
  obstacle: Obstacle,
  key: Key = BODY_KEY,
  max = Number.POSITIVE_INFINITY,
): boolean {
  const nodes = skipped[obstacle].get(key)?.letGo(max) ?? [];
  for (const node of nodes) attach(node);
  return nodes.length > 0;
}

export function resumeAll<J>(skipped: Skipped<J>, obstacle: Obstacle): void {
  for (const key of skipped[obstacle].keys()) resume(skipped, obstacle, key);
}

/** Removes the node from the tree if nothing waits below it, and then empty nodes above it. */
export function removeWhenEmpty<J>(node: Node<J>): void {
  const { parent } = node;
  if (parent === undefined || node.jobs.length > 0 || node.children.size > 0) return;
  node.waitsIn?.delete(node);
  removeChild(parent, node);
  removeWhenEmpty(parent);
}

/** An empty root gets new tables: a long-lived Map with many deletions keeps garbage in V8's old generation (`memory/id-table.ts`). */
function removeChild<J>(parent: Node<J>, node: Node<J>): void {
  parent.ring.delete(node);
  parent.children.delete(node.key);
  if (parent.children.size > 0 || parent.parent !== undefined) return;
  parent.ring = new Set();
  parent.children = new Map();
}

export interface PickContext<J> {
  readonly skipped: Skipped<J>;
  /** Undefined when the next job of the node may start. */
  readonly findObstacle: (node: Node<J>) => Obstacle | undefined;
}

/** Takes the next job below the node. */
export function pick<J extends Job>(node: Node<J>, context: PickContext<J>): J | undefined {
  if (node.level === 'hook') return node.jobs.shift();
  // A Set also visits children that are moved to its end meanwhile: that rotates the ring.
  for (const child of node.ring) {
    const obstacle = context.findObstacle(child);
    if (obstacle !== undefined) {
      skip(context.skipped, child, obstacle);
      continue;
    }
    if (!mayTakeTurn(node, child)) continue;
    const job = pick(child, context);
    if (job !== undefined) return payTurn(node, child, job);
    node.ring.delete(child);
  }
  return undefined;
}

function mayTakeTurn<J>({ ring }: Node<J>, child: Node<J>): boolean {
  if (child.deficit > 0) return true;
  child.deficit += QUANTUM;
  if (child.deficit > 0) return true;
  moveToEnd(ring, child);
  return false;
}

function payTurn<J extends Job>({ ring }: Node<J>, child: Node<J>, job: J): J {
  child.keepsPlace = false;
  child.deficit -= 1 + Math.floor(job.bodyBytes / COST_BYTES);
  if (child.deficit <= 0) moveToEnd(ring, child);
  return job;
}

function moveToEnd<T>(ring: Set<T>, item: T): void {
  ring.delete(item);
  ring.add(item);
}
