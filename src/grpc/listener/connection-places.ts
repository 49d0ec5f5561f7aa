import { type NetworkUse, NetworkUses } from '../budget/network-use.ts';
import type { Http2Connection } from '../http2/connection.ts';

/**
 * Limits the number of connections. When all places are taken, a new connection replaces one of the network with the most
 * connections, if that is its own network or has more than its own. Connections cost an attacker nothing, so opening many must neither keep
 * other networks out nor push out those with few.
 */
export class ConnectionPlaces {
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
    let [last, idle]: (Http2Connection | undefined)[] = [];
    for (const connection of this.#connections.keys()) {
      if (connection.network.connections !== most) continue;
      last = connection;
      if (isLongerIdle(connection, idle)) idle = connection;
    }
    // The new connection must not make its own network the largest.
    return idle ?? (most > own + 1 ? last : undefined);
  }
}

function isLongerIdle({ idleSinceMs }: Http2Connection, other: Http2Connection | undefined): boolean {
  return idleSinceMs !== undefined && idleSinceMs < (other?.idleSinceMs ?? Number.POSITIVE_INFINITY);
}
