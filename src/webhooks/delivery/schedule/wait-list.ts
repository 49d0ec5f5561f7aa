/** Keeps the nodes of the turn tree that wait for one thing, such as a slot at an origin, in the order in which they were served. */

/** A node that may wait in one list at a time. */
export interface Waiting {
  /** The list in which it waits; undefined while its turn may come. */
  waitsIn: { delete(node: Waiting): void } | undefined;
  /** It was let go and has not been served since: if it has to wait again, it keeps its place. */
  keepsPlace: boolean;
}

/**
 * Thousands of nodes may wait for one slot. So only some are let go when it may be free, and those that were not served come back before
 * those that were: they have their turns one after the other.
 */
export class WaitList<T extends Waiting> {
  /** Those that came back without being served. */
  readonly #front = new Set<T>();
  readonly #back = new Set<T>();
  readonly #onEmpty: () => void;

  /** `onEmpty` is called when the last node has left. */
  constructor(onEmpty: () => void) {
    this.#onEmpty = onEmpty;
  }

  add(node: T): void {
    (node.keepsPlace ? this.#front : this.#back).add(node);
    node.keepsPlace = false;
    node.waitsIn = this;
  }

  /** The node is gone. */
  delete(node: Waiting): void {
    this.#front.delete(node as T);
    this.#back.delete(node as T);
    node.waitsIn = undefined;
    this.#checkEmpty();
  }

  /** Lets the first nodes go, at most `max`, and returns them. */
  letGo(max: number): T[] {
    const nodes: T[] = [];
    for (const waiting of [this.#front, this.#back])
      for (const node of waiting) {
        if (nodes.length === max) break;
        waiting.delete(node);
        node.waitsIn = undefined;
        node.keepsPlace = true;
        nodes.push(node);
      }
    this.#checkEmpty();
    return nodes;
  }

  #checkEmpty(): void {
    if (this.#front.size === 0 && this.#back.size === 0) this.#onEmpty();
  }
}
