/** Limits the number of connections, and decides which connection gives up its place when all are taken. */
import { compareLoads, type Load, loadOf, type NetworkUse, NetworkUses } from './network-use.ts';

export interface PlacedConnection {
  /** The network that `enter` returned. */
  readonly network: NetworkUse;
  /** When it went on last, by the clock of its places. */
  readonly changedMs: number;
  /** It has nothing to do. */
  readonly isIdle: boolean;
  /** The server can do nothing for it before its client goes on. */
  readonly waitsForClient: boolean;
  /** Its place was given to another connection. */
  evict(): void;
}

interface Idle<Connection> {
  readonly connection: Connection;
  readonly since: number;
}

/** A search passes all connections, so it finds several at once. */
const MAX_FOUND = 64;
/** A client may pause before its first call, between two calls or the parts of a request, and go on. */
const MIN_PAUSE_MS = 1000;

/**
 * Limits the number of connections. When all places are taken, a new connection replaces one of the network with the most
 * connections, if that is its own network or has more than its own: the one that has been idle for longest, if that is a second, else the
 * one that has waited for its client for longest, if that is a second, else one that has been idle for less. When several networks have
 * most, and its own is one of them, it replaces one of its own; otherwise one of all of them, and of these one of the largest /48. One
 * that is busy gives way in the largest /48 alone. Connections cost an attacker nothing, so opening many must neither keep other
 * networks out nor push out those with few.
 */
export class ConnectionPlaces<Connection extends PlacedConnection> {
  readonly #maxConnections: number;
  readonly #monotonicMs: () => number;
  readonly #networks = new NetworkUses();
  readonly #connections = new Map<Connection, string>();
  /** The result of the last search, the longest idle last. */
  #found: Idle<Connection>[] = [];
  /** The network that was searched last; undefined when all the largest were. */
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

  /** One that waits goes before one that became idle within the last second, unless that is of a larger site. */
  #findPaused(largest: Largest): Connection | undefined {
    const latestMs = this.#monotonicMs() - MIN_PAUSE_MS;
    const idle = this.#findIdle(largest);
    if (idle !== undefined && idle.changedMs <= latestMs) return idle;
    const waiting = this.#findWaiting(largest, latestMs);
    if (idle === undefined || waiting === undefined) return idle ?? waiting;
    return idle.network.site.connections > waiting.network.site.connections ? idle : waiting;
  }

  /** A connection that became idle after the last search is idle for less long than those that were found. */
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

  /** Of the largest site with idle connections alone: those of others give way when it has none left. */
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
    // Of those that are idle for as long, the oldest is the last.
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

  /** The newest of the largest networks of the largest site. */
  #findLast(most: Load): Connection | undefined {
    let last: Connection | undefined;
    for (const connection of this.#connections.keys())
      if (compareLoads(loadOf(connection.network), most) === 0) last = connection;
    return last;
  }
}

/** Networks with the most connections. */
interface Largest extends Load {
  /** Not the others with as many. */
  readonly only: NetworkUse | undefined;
}

function isOf(network: NetworkUse, { connections, only }: Largest): boolean {
  return only === undefined ? network.connections === connections : network === only;
}
