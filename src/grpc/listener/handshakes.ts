/** Limits TLS handshakes under way: their number, their time, and how many begin in a turn of the event loop. */
import type { Server, Socket } from 'node:net';
import type { Server as TlsServer } from 'node:tls';
import { ConnectionPlaces, type PlacedConnection } from '../../connections/connection-places.ts';
import { createNetworkTurns } from '../../connections/network-turns.ts';
import type { NetworkUse } from '../../connections/network-use.ts';
import type { ReadNetwork } from '../../http/client-address.ts';
import { awaitHello } from './client-hello.ts';
import { RecordLimit } from './record-limit.ts';

/** A handshake has this long from the first byte of TCP on, whatever the client sends meanwhile. */
const HANDSHAKE_MS = 10_000;

/** Handshakes that begin in a turn of the event loop. Each signs, which takes 0.3 to 2 ms. */
const BEGUN_IN_A_TURN = 1;

/**
 * TLS connections whose handshake is under way. It begins once the first message of the client is whole, in the turn of its network: from
 * then on OpenSSL works as soon as bytes come. Each takes a file descriptor, until its deadline at most. Beyond the limit the oldest
 * of the network with the most is closed: a real client needs only milliseconds.
 *
 * The deadline is ours: `handshakeTimeout` of Node 24 reports a timeout and leaves the connection of TCP open.
 */
export class Handshakes {
  readonly #readNetwork: ReadNetwork;
  readonly #places: ConnectionPlaces<Handshake>;
  /** All that were accepted and are not handed over. */
  readonly #handshakes = new Set<Handshake>();
  /** The key is both addresses and ports: a client may use one port of its own for several addresses of ours. */
  readonly #byName = new Map<string, Handshake>();
  readonly #turns = createNetworkTurns(BEGUN_IN_A_TURN);
  readonly #records = new RecordLimit();
  #count = 0;

  constructor(max: number, readNetwork: ReadNetwork) {
    this.#readNetwork = readNetwork;
    this.#places = new ConnectionPlaces(max);
  }

  /** Hands the connections of a listener to the server that speaks TLS with them. */
  connect(listener: Server, server: TlsServer): void {
    listener.on('connection', (raw) => this.#accept(raw, server));
    server.on('secureConnection', (socket) => {
      const handshake = this.#byName.get(nameOf(socket));
      if (handshake === undefined) return;
      this.#end(handshake);
      this.#records.watch({ network: handshake.networkName, raw: handshake.raw, socket });
    });
  }

  destroyAll(): void {
    for (const handshake of this.#handshakes) handshake.evict();
  }

  #accept(raw: Socket, server: TlsServer): void {
    raw.on('error', () => raw.destroy());
    const network = this.#readNetwork(raw.remoteAddress);
    const use = this.#places.enter(network);
    if (use === undefined) {
      raw.destroy();
      return;
    }
    this.#add(raw, network, use);
    const begin = (): void => void server.emit('connection', raw);
    awaitHello(raw, () => this.#turns.wait(network, begin, () => raw.destroyed));
  }

  #add(raw: Socket, network: string, use: NetworkUse): void {
    this.#count += 1;
    const close = (): void => void raw.destroy();
    const deadline = setTimeout(close, HANDSHAKE_MS).unref();
    const handshake = {
      name: nameOf(raw),
      raw,
      networkName: network,
      network: use,
      idleSince: this.#count,
      evict: close,
      deadline,
    };
    this.#places.add(handshake, network);
    this.#handshakes.add(handshake);
    this.#byName.set(handshake.name, handshake);
    raw.once('close', () => this.#end(handshake));
  }

  #end(handshake: Handshake): void {
    if (!this.#handshakes.delete(handshake)) return;
    if (this.#byName.get(handshake.name) === handshake) this.#byName.delete(handshake.name);
    clearTimeout(handshake.deadline);
    this.#places.delete(handshake);
  }
}

/** It may be closed at any time, and the oldest is the first. */
interface Handshake extends PlacedConnection {
  readonly name: string;
  readonly raw: Socket;
  readonly networkName: string;
  readonly network: NetworkUse;
  readonly idleSince: number;
  readonly deadline: NodeJS.Timeout;
}

function nameOf(socket: Socket): string {
  const { remoteAddress, remotePort, localAddress, localPort } = socket;
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}
