import type { Socket } from 'node:net';
import type { Server } from 'node:tls';
import { ConnectionPlaces, type PlacedConnection } from '../../connections/connection-places.ts';
import type { NetworkUse } from '../../connections/network-use.ts';
import type { ReadNetwork } from '../../http/client-address.ts';

/**
 * TLS connections whose handshake is under way. Each takes a file descriptor, for ten seconds if it sends nothing. Beyond the
 * limit the oldest of the network with the most is closed: a real client needs only milliseconds.
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
    const handshake = { network: use, idleSince: this.#count, evict: () => socket.destroy() };
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
    this.#places.delete(handshake);
  }
}

/** It may be closed at any time, and the oldest is the first. */
interface Handshake extends PlacedConnection {
  readonly network: NetworkUse;
  readonly idleSince: number;
}

function nameOf(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort}`;
}
