/** Ends TLS connections that are busy with records without content, such as floods of key updates. */

const CHECK_MS = 100;
/** The most bytes that a TLS record has beside its content, without padding: its head, its type, its authentication tag. */
const RECORD_OVERHEAD_BYTES = 22;
const MAX_RECORD_BYTES = 16_384 + 256 + 5;
/** Bytes of records without content, in a second, of all connections of a network: 5,000 records, or 50 ms of work. */
const MAX_OF_NETWORK = 5000 * 27;
/** The same of all networks: 20,000 records, or 200 ms. */
const MAX_OF_ALL = 4 * MAX_OF_NETWORK;

/** The two sides of a connection: what came, and what TLS made of it. */
export interface TlsConnection {
  readonly network: string;
  readonly raw: { readonly bytesRead: number };
  readonly socket: { readonly bytesRead: number; readonly destroyed: boolean; destroy(): void };
}

/**
 * Ends TLS connections that are busy with anything but content: a change of keys (KeyUpdate of TLS 1.3) has 27 bytes, takes up to 10 µs,
 * and neither OpenSSL nor Node counts or reports it. At worst, each byte of content comes in a record of its own; bytes beyond that are
 * those of records without content. A network has a bound for all its connections, or a client would open many; the busiest one
 * ends first, so that others behind the same address go on. It does not see a connection that its client closes before the next
 * check: handshakes have limits of their own (`network-turns.ts`).
 */
export class RecordLimit {
  readonly #connections = new Map<TlsConnection, Read>();
  readonly #networks = new Map<string, Debt>();
  readonly #all = new Debt(MAX_OF_ALL);
  #timer: NodeJS.Timeout | undefined;

  /** Must be called at the end of the handshake. */
  watch(connection: TlsConnection): void {
    this.#connections.set(connection, readOf(connection));
    this.#timer ??= setInterval(() => this.check(), CHECK_MS).unref();
  }

  /** Ten times a second. */
  check(): void {
    for (const [connection, before] of this.#connections)
      if (connection.socket.destroyed) this.#connections.delete(connection);
      else this.#count(connection, before);
    this.#all.settle();
    for (const [network, debt] of this.#networks) if (debt.settle() === 0) this.#networks.delete(network);
    if (this.#connections.size > 0 || this.#networks.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #count(connection: TlsConnection, before: Read): void {
    const read = readOf(connection);
    const expected = (read.contentBytes - before.contentBytes) * (1 + RECORD_OVERHEAD_BYTES);
    const emptyBytes = Math.max(0, before.emptyBytes + read.bytes - before.bytes - expected);
    this.#connections.set(connection, { ...read, emptyBytes });
    const counted = countedOf(emptyBytes);
    const newBytes = counted - countedOf(before.emptyBytes);
    if (newBytes === 0) return;
    const share = { connection, counted, newBytes };
    const debt = this.#networks.get(connection.network) ?? new Debt(MAX_OF_NETWORK);
    this.#networks.set(connection.network, debt);
    debt.add(share);
    this.#all.add(share);
  }
}

/** The rest of a record may not be here yet, with the content of all of it. */
function countedOf(emptyBytes: number): number {
  return Math.max(0, emptyBytes - MAX_RECORD_BYTES);
}

interface Share {
  readonly connection: TlsConnection;
  /** Since the handshake. */
  readonly counted: number;
  /** Of the last check; below 0 when content came for what had counted as none. */
  readonly newBytes: number;
}

/** The recent bytes without content of several connections; what is allowed in a second is forgiven in a second. */
class Debt {
  readonly #max: number;
  #bytes = 0;
  /** Of the last check. */
  #shares: Share[] = [];

  constructor(max: number) {
    this.#max = max;
  }

  add(share: Share): void {
    this.#bytes = Math.max(0, this.#bytes + share.newBytes);
    if (share.newBytes > 0) this.#shares.push(share);
  }

  /** Ends the busiest connections while there is more than allowed. Returns what is not forgiven yet. */
  settle(): number {
    if (this.#bytes > this.#max) this.#endBusiest();
    this.#shares = [];
    this.#bytes = Math.max(0, this.#bytes - (this.#max * CHECK_MS) / 1000);
    return this.#bytes;
  }

  #endBusiest(): void {
    this.#shares.sort((a, b) => b.counted - a.counted);
    for (const { connection, counted } of this.#shares) {
      if (this.#bytes <= this.#max) return;
      connection.socket.destroy();
      this.#bytes = Math.max(0, this.#bytes - counted);
    }
  }
}

/** The bytes that a connection had read at the last check. */
interface Read {
  readonly bytes: number;
  readonly contentBytes: number;
  /** Bytes of records without content, since the handshake. */
  readonly emptyBytes: number;
}

function readOf({ raw, socket }: TlsConnection): Read {
  return { bytes: raw.bytesRead, contentBytes: socket.bytesRead, emptyBytes: 0 };
}
