/** Decides whose compressed message is expanded next: networks have turns, and in each its connections. */
import { type Linked, LinkedQueue } from '../../memory/linked-queue.ts';

/** A connection. What the connections of one network wait for must not delay another network: connections cost nothing. */
export interface MessageOwner {
  readonly network: object;
}

/** A connection that waits. */
export interface Waiting extends Linked<Waiting> {
  readonly owner: MessageOwner;
}

/** The networks have turns, and in each network its connections. Nothing here depends on how many wait. */
export class DecompressionTurns<T extends Waiting> {
  /** The first one is the next. None of the queues is empty. */
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

  /** Removes the next one, after which its network is the last. */
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
