/** Lists the nodes of the turn tree that wait for one limit, such as a slot at an origin; those not served for longest come first. */

/** A node that may wait in one list at a time. */
export interface Waiting {
  /** The list in which it waits; undefined while its turn may come. */
  waitsIn: { delete(node: Waiting): void } | undefined;
  /** Whether the node was released and has not been served since: if it has to wait again, it goes before the others. */
  keepsPlace: boolean;
}

/**
 * Thousands of nodes may wait for one slot, so only a few are released when it may be free. Released nodes that were not served wait
 * before those that were, so that all get their turns.
 */
export class WaitList<T extends Waiting> {
  /** Nodes that came back without being served. */
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

  /** Removes a node that was removed from the tree. */
  delete(node: Waiting): void {
    this.#front.delete(node as T);
    this.#back.delete(node as T);
    node.waitsIn = undefined;
    this.#checkEmpty();
  }

  /** Releases up to `max` of the first nodes, and returns them. */
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
