/** Limits the number of connections, and decides which connection gives up its place when all are taken. */
import { compareLoads, type Load, loadOf, type NetworkUse, NetworkUses } from './network-use.ts';

export interface PlacedConnection {
  /** The network that `enter` returned. */
  readonly network: NetworkUse;
  /** When it made progress last, by the clock of its `ConnectionPlaces`. */
  readonly changedMs: number;
  /** Whether it has no call or request. */
  readonly isIdle: boolean;
  /** Whether it waits for its client. */
  readonly waitsForClient: boolean;
  /** Called when its place was given to another connection. */
  evict(): void;
}

interface Idle<Connection> {
  readonly connection: Connection;
  readonly since: number;
}

/** How many connections a search returns: it visits all of them, so it finds several at once. */
const MAX_FOUND = 64;
/** A pause that an active client may make before its first call, between two calls, or between parts of a request. */
const MIN_PAUSE_MS = 1000;

/**
 * Limits the number of connections. When all places are taken, a new connection replaces one of the network with the most
 * connections, if that is its own network or a larger one: first the longest idle (1 s at least), then the one that has waited longest
 * for its client (1 s at least), then one that has been idle for less. When several networks have the most connections, its own network
 * among them, it replaces one of its own; otherwise one of all of these, from the largest /48. A busy connection is replaced in the
 * largest /48 only. Connections cost an attacker nothing, so opening many must neither keep other networks out nor push out those
 * with few.
 */
export class ConnectionPlaces<Connection extends PlacedConnection> {
  readonly #maxConnections: number;
  readonly #monotonicMs: () => number;
  readonly #networks = new NetworkUses();
  readonly #connections = new Map<Connection, string>();
  /** The result of the last search, the longest idle last. */
  #found: Idle<Connection>[] = [];
  /** The network that was searched last; undefined when all of the largest networks were searched. */
  #searched: NetworkUse | undefined;

  constructor(maxConnections: number, monotonicMs: () => number) {
    this.#maxConnections = maxConnections;
    this.#monotonicMs = monotonicMs;
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
    const only = own?.connections === most.connections ? own : undefined;
    const left = this.#findPaused({ ...(only === undefined ? most : loadOf(only)), only });
    if (left !== undefined) return left;
    // The new connection must not make its own network the largest.
    return compareLoads(this.#networks.loadWithOneMore(network), most) < 0 ? this.#findLast(most) : undefined;
  }

  /** A waiting connection is replaced before one that became idle within the last second, unless the idle one is of a larger site. */
  #findPaused(largest: Largest): Connection | undefined {
    const latestMs = this.#monotonicMs() - MIN_PAUSE_MS;
    const idle = this.#findIdle(largest);
    if (idle !== undefined && idle.changedMs <= latestMs) return idle;
    const waiting = this.#findWaiting(largest, latestMs);
    if (idle === undefined || waiting === undefined) return idle ?? waiting;
    return idle.network.site.connections > waiting.network.site.connections ? idle : waiting;
  }

  /** Reuses the last search: a connection that became idle after it has been idle for less time than those that were found. */
  #findIdle(largest: Largest): Connection | undefined {
    const known = this.#searched === largest.only ? this.#lastFound(largest) : undefined;
    // Otherwise another site has become the largest.
    if (known !== undefined && known.network.site.connections >= largest.ofSite) return known;
    this.#searched = largest.only;
    this.#found = this.#searchIdle(largest);
    return this.#lastFound(largest);
  }

  #lastFound(largest: Largest): Connection | undefined {
    for (let idle = this.#found.at(-1); idle !== undefined; idle = this.#found.at(-1)) {
      const { connection, since } = idle;
      const isOpen = this.#connections.has(connection) && isOf(connection.network, largest);
      if (isOpen && connection.isIdle && connection.changedMs === since) return connection;
      this.#found.pop();
    }
    return undefined;
  }

  /** Searches only the largest site with idle connections: other sites follow when it has no more. */
  #searchIdle(largest: Largest): Idle<Connection>[] {
    let found: Idle<Connection>[] = [];
    let ofSite = 0;
    for (const connection of this.#connections.keys()) {
      const { network } = connection;
      if (network.site.connections < ofSite || !isOf(network, largest) || !connection.isIdle) continue;
      if (network.site.connections > ofSite) found = [];
      ofSite = network.site.connections;
      found.push({ connection, since: connection.changedMs });
    }
    // Among connections that are idle equally long, the oldest comes last.
    return found
      .reverse()
      .sort((left, right) => right.since - left.since)
      .slice(-MAX_FOUND);
  }

  #findWaiting(largest: Largest, latestMs: number): Connection | undefined {
    let found: Connection | undefined;
    let ofSite = 0;
    for (const connection of this.#connections.keys()) {
      const { network, changedMs } = connection;
      if (changedMs > latestMs || network.site.connections < ofSite || !isOf(network, largest)) continue;
      if (network.site.connections === ofSite && found !== undefined && changedMs >= found.changedMs) continue;
      if (connection.isIdle || !connection.waitsForClient) continue;
      found = connection;
      ofSite = network.site.connections;
    }
    return found;
  }

  /** Finds the newest connection in the largest networks of the largest site. */
  #findLast(most: Load): Connection | undefined {
    let last: Connection | undefined;
    for (const connection of this.#connections.keys())
      if (compareLoads(loadOf(connection.network), most) === 0) last = connection;
    return last;
  }
}

/** Networks with the most connections. */
interface Largest extends Load {
  /** If set, only this network, not others with as many connections. */
  readonly only: NetworkUse | undefined;
}

function isOf(network: NetworkUse, { connections, only }: Largest): boolean {
  return only === undefined ? network.connections === connections : network === only;
}
