/**
 * Deficit round robin (Shreedhar and Varghese, 1995) over a tree of owner → origin → hook. A node at its limit is parked:
 * taken out of its ring, and put back when a place for it may have become free. So a choice costs the same with ten
 * endpoints and with ten thousand.
 */
import type { SlotHolder } from './slots.ts';

/** A turn is worth one small delivery; large bodies wait for several turns. */
const COST_BYTES = 16_384;
const QUANTUM = 1;

export type Lane = 'first' | 'retry';

/** One delivery that waits to be sent. */
export interface Job extends SlotHolder {
  readonly id: number;
  readonly lane: Lane;
  readonly bodyBytes: number;
}

type Level = 'root' | 'owner' | 'origin' | 'hook';
type Key = string | number;

export interface Node<J> {
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

export function createRoot<J>(): Node<J> {
  return createNode('root', '');
}

function createNode<J>(level: Level, key: Key, parent?: Node<J>): Node<J> {
  return { level, key, parent, children: new Map(), ring: new Set(), jobs: [], deficit: 0 };
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

/** Nodes that are out of their rings, by what they wait for. */
export type Parking<J> = Readonly<Record<Level, Map<Key, Set<Node<J>>>>>;

export function createParking<J>(): Parking<J> {
  return { root: new Map(), owner: new Map(), origin: new Map(), hook: new Map() };
}

/** Puts the node and those above it into their rings, unless they are parked. */
export function attach<J>(parking: Parking<J>, node: Node<J>): void {
  if (node.parent === undefined || parking[node.level].get(node.key)?.has(node)) return;
  node.parent.ring.add(node);
  attach(parking, node.parent);
}

function park<J>(parking: Parking<J>, node: Node<J>): void {
  node.parent?.ring.delete(node);
  const nodes = parking[node.level].get(node.key) ?? new Set();
  parking[node.level].set(node.key, nodes.add(node));
}

export function unpark<J>(parking: Parking<J>, level: Level, key: Key): void {
  const nodes = parking[level].get(key);
  if (nodes === undefined) return;
  parking[level].delete(key);
  for (const node of nodes) attach(parking, node);
}

export function unparkAll<J>(parking: Parking<J>, level: Level): void {
  for (const key of parking[level].keys()) unpark(parking, level, key);
}

/** Removes the node from the tree when nothing waits below it, and then those above it. */
export function removeWhenEmpty<J>(parking: Parking<J>, node: Node<J>): void {
  const { parent, level, key } = node;
  if (parent === undefined || node.jobs.length > 0 || node.children.size > 0) return;
  const parked = parking[level].get(key);
  parked?.delete(node);
  if (parked?.size === 0) parking[level].delete(key);
  parent.ring.delete(node);
  parent.children.delete(key);
  removeWhenEmpty(parking, parent);
}

export interface PickContext<J> {
  readonly parking: Parking<J>;
  /** Whether the limits of the node's level leave a place. */
  readonly canStart: (node: Node<J>) => boolean;
}

/** Takes the next job below the node. */
export function pick<J extends Job>(node: Node<J>, context: PickContext<J>): J | undefined {
  if (node.level === 'hook') return node.jobs.shift();
  // The walk goes on to children that are moved to the end meanwhile: that turns the ring.
  for (const child of node.ring) {
    if (!context.canStart(child)) {
      park(context.parking, child);
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
  child.deficit -= 1 + Math.floor(job.bodyBytes / COST_BYTES);
  if (child.deficit <= 0) moveToEnd(ring, child);
  return job;
}

function moveToEnd<T>(ring: Set<T>, item: T): void {
  ring.delete(item);
  ring.add(item);
}
