import { type NetworkUse, NetworkUses } from '../budget/network-use.ts';
import type { Http2Connection } from '../http2/connection.ts';

/**
 * Limits the number of connections. When all places are taken, a new connection replaces one of the network with the most
 * connections, if that is its own network or has more than its own. Connections cost an attacker nothing, so opening many must neither keep
 * other networks out nor push out those with few.
 */
export class Places {
  readonly #maxConnections: number;
  readonly #networks = new NetworkUses();
  readonly #connections = new Map<Http2Connection, string>();

  constructor(maxConnections: number) {
    this.#maxConnections = maxConnections;
  }

  [Symbol.iterator](): IterableIterator<Http2Connection> {
    return this.#connections.keys();
  }

  /** Frees a place when all are taken. Undefined when the new connection must be refused. */
  enter(network: string): NetworkUse | undefined {
    if (this.#connections.size >= this.#maxConnections && !this.#makePlace(network)) return undefined;
    return this.#networks.enter(network);
  }

  add(connection: Http2Connection, network: string): void {
    this.#connections.set(connection, network);
  }

  delete(connection: Http2Connection): void {
    const network = this.#connections.get(connection);
    if (network === undefined) return;
    this.#connections.delete(connection);
    this.#networks.leave(network, connection.network);
  }

  #makePlace(network: string): boolean {
    const leaving = this.#findLeaving(network);
    if (leaving === undefined) return false;
    this.delete(leaving);
    leaving.evict();
    return true;
  }

  #findLeaving(network: string): Http2Connection | undefined {
    const own = this.#networks.countConnections(network);
    const most = Math.max(own, ...this.#networks.counts());
    const crowd = [...this.#connections.keys()].filter((connection) => connection.network.connections === most);
    const idle = findLongestIdle(crowd);
    // The new connection must not make its own network the largest.
    return idle ?? (most > own + 1 ? crowd.at(-1) : undefined);
  }
}

function findLongestIdle(connections: readonly Http2Connection[]): Http2Connection | undefined {
  let longest: Http2Connection | undefined;
  for (const connection of connections) {
    const { idleSinceMs } = connection;
    if (idleSinceMs !== undefined && idleSinceMs < (longest?.idleSinceMs ?? Number.POSITIVE_INFINITY))
      longest = connection;
  }
  return longest;
}
