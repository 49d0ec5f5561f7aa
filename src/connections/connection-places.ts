import { type NetworkUse, NetworkUses } from './network-use.ts';

export interface PlacedConnection {
  /** As `enter` returned it. */
  readonly network: NetworkUse;
  /** Since when it has nothing to do, on any clock that all connections share; undefined while it has. */
  readonly idleSince: number | undefined;
  /** It is not idle, but the server can do nothing for it before its client goes on. */
  readonly waitsForClient?: boolean;
  /** Its place was given to another connection. */
  evict(): void;
}

interface Idle<Connection> {
  readonly connection: Connection;
  readonly since: number;
}

/** A search passes all connections, so it finds several at once. */
const MAX_FOUND = 64;

/**
 * Limits the number of connections. When all places are taken, a new connection replaces one of the network with the most
 * connections, if that is its own network or has more than its own: the one that is idle for longest, else one that waits for its
 * client. Connections cost an attacker nothing, so opening many must neither keep other networks out nor push out those with few.
 */
export class ConnectionPlaces<Connection extends PlacedConnection> {
  readonly #maxConnections: number;
  readonly #networks = new NetworkUses();
  readonly #connections = new Map<Connection, string>();
  /** Of the last search, the longest idle last. */
  #found: Idle<Connection>[] = [];

  constructor(maxConnections: number) {
    this.#maxConnections = maxConnections;
  }

  [Symbol.iterator](): IterableIterator<Connection> {
    return this.#connections.keys();
  }

  /** Frees a place when all are taken. Undefined when the new connection must be refused. */
  enter(network: string): NetworkUse | undefined {
    if (this.#connections.size >= this.#maxConnections && !this.#makePlace(network)) return undefined;
    return this.#networks.enter(network);
  }

  /** Must be called in the turn of `enter`. */
  add(connection: Connection, network: string): void {
    this.#connections.set(connection, network);
  }

  delete(connection: Connection): void {
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

  #findLeaving(network: string): Connection | undefined {
    const own = this.#networks.countConnections(network);
    const most = Math.max(own, this.#networks.most);
    // The new connection must not make its own network the largest.
    return this.#findIdle(most) ?? this.#findWaiting(most) ?? (most > own + 1 ? this.#findLast(most) : undefined);
  }

  /** A connection that became idle after the last search is idle for less long than those that were found. */
  #findIdle(most: number): Connection | undefined {
    const known = this.#takeFound(most);
    if (known !== undefined) return known;
    this.#found = this.#searchIdle(most);
    return this.#takeFound(most);
  }

  #takeFound(most: number): Connection | undefined {
    for (let idle = this.#found.pop(); idle !== undefined; idle = this.#found.pop()) {
      const { connection, since } = idle;
      if (!this.#connections.has(connection) || connection.network.connections !== most) continue;
      if (connection.idleSince === since) return connection;
    }
    return undefined;
  }

  #searchIdle(most: number): Idle<Connection>[] {
    const found: Idle<Connection>[] = [];
    for (const connection of this.#connections.keys()) {
      const since = connection.idleSince;
      if (since !== undefined && connection.network.connections === most) found.push({ connection, since });
    }
    return found.sort((left, right) => right.since - left.since).slice(-MAX_FOUND);
  }

  #findWaiting(most: number): Connection | undefined {
    for (const connection of this.#connections.keys())
      if (connection.network.connections === most && connection.waitsForClient === true) return connection;
    return undefined;
  }

  #findLast(most: number): Connection | undefined {
    let last: Connection | undefined;
    for (const connection of this.#connections.keys()) if (connection.network.connections === most) last = connection;
    return last;
  }
}
