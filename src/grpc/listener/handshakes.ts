/** Limits TLS handshakes under way: their number, their time, and how many begin in a turn of the event loop. */
import type { Server, Socket } from 'node:net';
import type { TLSSocket, Server as TlsServer } from 'node:tls';
import { ConnectionPlaces, type PlacedConnection } from '../../connections/connection-places.ts';
import { createNetworkTurns } from '../../connections/network-turns.ts';
import type { NetworkUse } from '../../connections/network-use.ts';
import type { ReadNetwork } from '../../http/client-address.ts';
import { awaitHello } from './client-hello.ts';
import { RecordLimit, type TlsConnection } from './record-limit.ts';
import { TinyRecords } from './tiny-records.ts';

/** The time limit of a handshake, from the start of the TCP connection, whatever the client sends meanwhile. */
const HANDSHAKE_MS = 10_000;

/** How many handshakes begin in a turn of the event loop. Each computes a signature, which takes 0.3 to 2 ms. */
const BEGUN_IN_A_TURN = 1;

/** The most bytes of a client's second message, without and with a certificate. */
const MAX_ANSWER_BYTES = 256;
const MAX_MUTUAL_ANSWER_BYTES = 16_384;

/**
 * The weight of a byte of client certificates, relative to a byte of key updates, when the handshake fails. OpenSSL checks the
 * signature of each certificate, trusted or not: 100 KB of them take 0.65 s; 100 KB of key updates take 0.04 s.
 */
const CERTIFICATE_WEIGHT = 17;

/**
 * TLS connections whose handshake is under way. It begins once the ClientHello is complete, in the turn of its network: from
 * then on OpenSSL works as soon as bytes arrive. Each takes a file descriptor until its deadline at most. Beyond the limit, the oldest
 * one of the network with the most is closed: a real client needs only milliseconds.
 *
 * The deadline is our own timer: Node 24's `handshakeTimeout` reports a timeout and leaves the TCP connection open.
 */
export class Handshakes {
  readonly #readNetwork: ReadNetwork;
  readonly #monotonicMs: () => number;
  readonly #places: ConnectionPlaces<Handshake>;
  /** All accepted connections that are not handed over yet. */
  readonly #handshakes = new Set<Handshake>();
  /** Keyed by both addresses and ports: a client may use one of its ports for several of our addresses. */
  readonly #byName = new Map<string, Handshake>();
  readonly #turns = createNetworkTurns(BEGUN_IN_A_TURN);
  readonly #records = new RecordLimit();
  readonly #tinyRecords = new TinyRecords();
  #maxAnswerBytes = MAX_ANSWER_BYTES;
  #isMutual = false;

  constructor(max: number, readNetwork: ReadNetwork, monotonicMs: () => number) {
    this.#readNetwork = readNetwork;
    this.#monotonicMs = monotonicMs;
    this.#places = new ConnectionPlaces(max, monotonicMs);
  }

  /** Hands the connections of a listener to the server that does their TLS. */
  connect(listener: Server, server: TlsServer, isMutual: boolean): void {
    this.#isMutual = isMutual;
    if (isMutual) this.#maxAnswerBytes = MAX_MUTUAL_ANSWER_BYTES;
    listener.on('connection', (raw) => this.#accept(raw, server));
    server.on('secureConnection', (socket) => {
      const handshake = this.#byName.get(nameOf(socket));
      if (handshake === undefined) return;
      this.#end(handshake);
      this.#watch(handshake, socket);
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
    const handshake = this.#add(raw, network, use);
    const begin = (): void => {
      handshake.hasBegun = true;
      server.emit('connection', raw);
    };
    const wait = (): void => this.#turns.wait(network, begin, () => raw.destroyed);
    awaitHello(raw, (helloBytes) => {
      handshake.helloBytes = helloBytes;
      const delayMs = this.#records.delayMs(network);
      if (delayMs === 0) wait();
      else if (delayMs < HANDSHAKE_MS) {
        const timer = setTimeout(wait, delayMs).unref();
        raw.once('close', () => clearTimeout(timer));
      }
      // Otherwise the deadline of the handshake would come first.
    });
  }

  #watch({ networkName, raw, helloBytes }: Handshake, socket: TLSSocket): void {
    let contentRecords = 0;
    const countTiny = this.#tinyRecords.watch(socket);
    onContent(socket, (bytes) => {
      contentRecords += 1;
      countTiny(bytes);
    });
    const connection: TlsConnection = {
      network: networkName,
      raw,
      socket,
      get contentRecords() {
        return contentRecords;
      },
    };
    this.#records.watch(connection, Math.min(raw.bytesRead, helloBytes + this.#maxAnswerBytes));
    socket.once('close', () => this.#records.leave(connection));
  }

  #add(raw: Socket, network: string, use: NetworkUse): Handshake {
    const close = (): void => void raw.destroy();
    const deadline = setTimeout(close, HANDSHAKE_MS).unref();
    const handshake: Handshake = {
      name: nameOf(raw),
      helloBytes: 0,
      hasBegun: false,
      raw,
      networkName: network,
      network: use,
      changedMs: this.#monotonicMs(),
      isIdle: true,
      waitsForClient: false,
      evict: close,
      deadline,
    };
    this.#places.add(handshake, network);
    this.#handshakes.add(handshake);
    this.#byName.set(handshake.name, handshake);
    raw.once('close', () => {
      if (this.#handshakes.has(handshake)) this.#charge(handshake);
      this.#end(handshake);
    });
    return handshake;
  }

  /**
   * Failed handshakes delay the next ones of their network by the work that their certificates caused. In TLS 1.2 certificates may
   * come with the first message.
   */
  #charge({ networkName, raw, helloBytes, hasBegun }: Handshake): void {
    if (this.#isMutual && hasBegun)
      this.#records.charge(networkName, CERTIFICATE_WEIGHT * Math.max(0, raw.bytesRead - helloBytes));
  }

  #end(handshake: Handshake): void {
    if (!this.#handshakes.delete(handshake)) return;
    if (this.#byName.get(handshake.name) === handshake) this.#byName.delete(handshake.name);
    clearTimeout(handshake.deadline);
    this.#places.delete(handshake);
  }
}

/** A pending handshake may be closed at any time; the oldest is the first. */
interface Handshake extends PlacedConnection {
  readonly name: string;
  /** The length of the ClientHello in bytes. */
  helloBytes: number;
  /** OpenSSL has the received bytes and gets all later ones. */
  hasBegun: boolean;
  readonly raw: Socket;
  readonly networkName: string;
  readonly deadline: NodeJS.Timeout;
}

/** Calls back with the content length of each record, also while the socket is paused and emits no event. */
function onContent(socket: TLSSocket, callback: (bytes: number) => void): void {
  const push = socket.push.bind(socket);
  socket.push = (content: Buffer | null, encoding) => {
    if (content !== null) callback(content.length);
    return push(content, encoding);
  };
}

function nameOf(socket: Socket): string {
  const { remoteAddress, remotePort, localAddress, localPort } = socket;
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}
