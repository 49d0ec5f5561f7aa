/** Decides whose compressed message is expanded next: networks take turns (round robin), and so do the connections of each. */
import { type Linked, LinkedQueue } from '../../memory/linked-queue.ts';

/** A connection. The waits of one network must not delay another network: connections cost an attacker nothing. */
export interface MessageOwner {
  readonly network: object;
}

/** A connection that waits. */
export interface Waiting extends Linked<Waiting> {
  readonly owner: MessageOwner;
}

/** Networks take turns, and so do the connections of each. No operation takes longer when more connections wait. */
export class DecompressionTurns<T extends Waiting> {
  /** The first network is the next one. No queue is empty. */
  readonly #networks = new Map<object, LinkedQueue<Waiting>>();

  get isEmpty(): boolean {
    return this.#networks.size === 0;
  }

  add(waiting: T): void {
    const { network } = waiting.owner;
    let queue = this.#networks.get(network);
    if (queue === undefined) {
      queue = new LinkedQueue();
      this.#networks.set(network, queue);
    }
    queue.add(waiting);
  }

  delete(waiting: T): void {
    const { network } = waiting.owner;
    const queue = this.#networks.get(network);
    if (queue?.delete(waiting) && queue.first === undefined) this.#networks.delete(network);
  }

  /** Removes the next connection, and moves its network to the end. */
  take(): T | undefined {
    for (const [network, queue] of this.#networks) {
      const first = queue.first as T;
      queue.delete(first);
      this.#networks.delete(network);
      if (queue.first !== undefined) this.#networks.set(network, queue);
      return first;
    }
    return undefined;
  }
}
