/** Limits the number of connections, and decides which connection gives up its place when all are taken. */
import { compareLoads, type Load, loadOf, type NetworkUse, NetworkUses } from './network-use.ts';

export interface PlacedConnection {
  /** The network that `enter` returned. */
  readonly network: NetworkUse;
  /** It has had nothing to do since this time, on any clock that all connections share; undefined while it has something. */
  readonly idleSince: number | undefined;
  /** It is not idle, but the server can do nothing for it before its client goes on: for how long nothing has gone on. */
  readonly waitedMs?: number | undefined;
  /** Its place was given to another connection. */
  evict(): void;
}

interface Idle<Connection> {
  readonly connection: Connection;
  readonly since: number;
}

/** A search passes all connections, so it finds several at once. */
const MAX_FOUND = 64;
/** A client may pause between the parts of a request, or its events, and go on. */
const MIN_WAITED_MS = 1000;

/**
 * Limits the number of connections. When all places are taken, a new connection replaces one of the network with the most
 * connections, if that is its own network or has more than its own: the one that is idle for longest, else the one that has waited for
 * its client for longest. When several networks have most, and its own is one of them, it replaces one of its own; otherwise an idle one of all of
 * them, else one that waits, and of these one of the largest /48. One that is busy gives way in the largest /48 alone. Connections
 * cost an attacker nothing, so opening many must neither keep other networks out nor push out those with few.
 */
export class ConnectionPlaces<Connection extends PlacedConnection> {
  readonly #maxConnections: number;
  readonly #networks = new NetworkUses();
  readonly #connections = new Map<Connection, string>();
  /** The result of the last search, the longest idle last. */
  #found: Idle<Connection>[] = [];
  /** The network that was searched last; undefined when all the largest were. */
  #searched: NetworkUse | undefined;

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
    const own = this.#networks.find(network);
    const most = this.#networks.largest;
    const { connections } = most;
    const largest: Largest = { connections, only: own?.connections === connections ? own : undefined };
    const left = this.#findIdle(largest) ?? this.#findWaiting(largest);
    if (left !== undefined) return left;
    // The new connection must not make its own network the largest.
    return compareLoads(this.#networks.loadWithOneMore(network), most) < 0 ? this.#findLast(most) : undefined;
  }

  /** A connection that became idle after the last search is idle for less long than those that were found. */
  #findIdle(largest: Largest): Connection | undefined {
    const known = this.#searched === largest.only ? this.#takeFound(largest) : undefined;
    if (known !== undefined) return known;
    this.#searched = largest.only;
    this.#found = this.#searchIdle(largest);
    return this.#takeFound(largest);
  }

  #takeFound(largest: Largest): Connection | undefined {
    for (let idle = this.#found.pop(); idle !== undefined; idle = this.#found.pop()) {
      const { connection, since } = idle;
      if (!this.#connections.has(connection) || !isOf(connection.network, largest)) continue;
      if (connection.idleSince === since) return connection;
    }
    return undefined;
  }

  /** Of the largest site with idle connections alone: those of others give way when it has none left. */
  #searchIdle(largest: Largest): Idle<Connection>[] {
    let found: Idle<Connection>[] = [];
    let ofSite = 0;
    for (const connection of this.#connections.keys()) {
      const { idleSince: since, network } = connection;
      if (since === undefined || !isOf(network, largest) || network.site.connections < ofSite) continue;
      if (network.site.connections > ofSite) found = [];
      ofSite = network.site.connections;
      found.push({ connection, since });
    }
    return found.sort((left, right) => right.since - left.since).slice(-MAX_FOUND);
  }

  #findWaiting(largest: Largest): Connection | undefined {
    let found: Connection | undefined;
    let ofSite = 0;
    let longestMs = 0;
    for (const connection of this.#connections.keys()) {
      const { network, waitedMs = 0 } = connection;
      if (waitedMs < MIN_WAITED_MS || !isOf(network, largest) || network.site.connections < ofSite) continue;
      if (network.site.connections === ofSite && waitedMs <= longestMs) continue;
      found = connection;
      ofSite = network.site.connections;
      longestMs = waitedMs;
    }
    return found;
  }

  /** The newest of the largest networks of the largest site. */
  #findLast(most: Load): Connection | undefined {
    let last: Connection | undefined;
    for (const connection of this.#connections.keys())
      if (compareLoads(loadOf(connection.network), most) === 0) last = connection;
    return last;
  }
}

/** Networks with the most connections. */
interface Largest {
  readonly connections: number;
  /** Not the others with as many. */
  readonly only: NetworkUse | undefined;
}

function isOf(network: NetworkUse, { connections, only }: Largest): boolean {
  return only === undefined ? network.connections === connections : network === only;
}
