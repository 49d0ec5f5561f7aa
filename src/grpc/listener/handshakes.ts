import type { Socket } from 'node:net';
import type { Server } from 'node:tls';
import { ConnectionPlaces, type PlacedConnection } from '../../connections/connection-places.ts';
import type { NetworkUse } from '../../connections/network-use.ts';
import type { ReadNetwork } from '../../http/client-address.ts';

/** From the first byte of TCP on, whatever the client sends meanwhile. */
const HANDSHAKE_MS = 10_000;

/**
 * TLS connections whose handshake is under way. Each takes a file descriptor, until its deadline at most. Beyond the limit the oldest
 * of the network with the most is closed: a real client needs only milliseconds.
 *
 * The deadline is ours: `handshakeTimeout` of Node 24 reports a timeout and leaves the connection of TCP open.
 */
export class Handshakes {
  readonly #readNetwork: ReadNetwork;
  readonly #places: ConnectionPlaces<Handshake>;
  /** By the address and port of the client. */
  readonly #handshakes = new Map<string, Handshake>();
  #count = 0;

  constructor(max: number, readNetwork: ReadNetwork) {
    this.#readNetwork = readNetwork;
    this.#places = new ConnectionPlaces(max);
  }

  watch(server: Server): void {
    server.on('connection', (socket) => this.#begin(socket));
    server.on('secureConnection', (socket) => this.#end(nameOf(socket)));
  }

  destroyAll(): void {
    for (const handshake of this.#handshakes.values()) handshake.evict();
  }

  #begin(socket: Socket): void {
    const network = this.#readNetwork(socket.remoteAddress);
    const use = this.#places.enter(network);
    if (use === undefined) {
      socket.destroy();
      return;
    }
    const name = nameOf(socket);
    this.#end(name);
    this.#count += 1;
    const close = (): void => void socket.destroy();
    const deadline = setTimeout(close, HANDSHAKE_MS).unref();
    const handshake = { network: use, idleSince: this.#count, evict: close, deadline };
    this.#places.add(handshake, network);
    this.#handshakes.set(name, handshake);
    socket.once('close', () => {
      if (this.#handshakes.get(name) === handshake) this.#end(name);
    });
  }

  #end(name: string): void {
    const handshake = this.#handshakes.get(name);
    if (handshake === undefined) return;
    this.#handshakes.delete(name);
    clearTimeout(handshake.deadline);
    this.#places.delete(handshake);
  }
}

/** It may be closed at any time, and the oldest is the first. */
interface Handshake extends PlacedConnection {
  readonly network: NetworkUse;
  readonly idleSince: number;
  readonly deadline: NodeJS.Timeout;
}

function nameOf(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort}`;
}
