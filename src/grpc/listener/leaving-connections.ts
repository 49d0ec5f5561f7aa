/** Lets a few connections that gave their place stay while their clients read the rest of the answers. */
import { ConnectionPlaces, type PlacedConnection } from '../../connections/connection-places.ts';
import type { Http2Connection } from '../http2/connection.ts';

/** Each has an open file that no limit of connections counts. The memory budget counts what it has not sent. */
const LEAVING_PER_CONNECTION = 0.125;

/**
 * Connections that gave their place to another client, until they close. When there are too many, one of the network with the most is
 * closed: one that has nothing left to send, or else the one that came last. The other clients go on reading.
 */
export class LeavingConnections {
  readonly #places: ConnectionPlaces<PlacedConnection>;
  readonly #monotonicMs: () => number;
  readonly #leaving = new Map<Http2Connection, PlacedConnection>();

  constructor(maxConnections: number, monotonicMs: () => number) {
    this.#places = new ConnectionPlaces(Math.ceil(maxConnections * LEAVING_PER_CONNECTION), monotonicMs);
    this.#monotonicMs = monotonicMs;
  }

  [Symbol.iterator](): IterableIterator<Http2Connection> {
    return this.#leaving.keys();
  }

  /** Closes this connection or another one when there are too many. */
  add(connection: Http2Connection, networkName: string): void {
    const network = this.#places.enter(networkName);
    if (network === undefined) {
      connection.close();
      return;
    }
    const leaving: PlacedConnection = {
      network,
      changedMs: this.#monotonicMs(),
      get isIdle() {
        return connection.isIdle;
      },
      // One that has more to send does not give way to those that come later: it closes soon by itself.
      waitsForClient: false,
      evict: () => connection.close(),
    };
    this.#places.add(leaving, networkName);
    this.#leaving.set(connection, leaving);
  }

  delete(connection: Http2Connection): void {
    const leaving = this.#leaving.get(connection);
    if (leaving === undefined) return;
    this.#leaving.delete(connection);
    this.#places.delete(leaving);
  }
}
