/** Ends TLS connections that are busy with records without content, such as floods of key updates. */

const CHECK_MS = 100;
/** The most bytes that a TLS record has beside its content, without padding: its head, the nonce of TLS 1.2, its authentication tag. */
const RECORD_OVERHEAD_BYTES = 29;
const MAX_RECORD_BYTES = 16_384 + 256 + 5;
/** Bytes of records without content, in a second, of all connections of a network: 5,000 records, or 50 ms of work. */
const MAX_OF_NETWORK = 5000 * 27;
/** The same of all networks: 20,000 records, or 200 ms. */
const MAX_OF_ALL = 4 * MAX_OF_NETWORK;

/** The two sides of a connection: what came, and what TLS made of it. */
export interface TlsConnection {
  readonly network: string;
  readonly raw: { readonly bytesRead: number };
  /** Node reports the content of each record by itself. */
  readonly contentRecords: number;
  readonly socket: { readonly bytesRead: number; readonly destroyed: boolean; destroy(): void };
}

/**
 * Ends TLS connections that are busy with anything but content: a change of keys (KeyUpdate of TLS 1.3) has 27 bytes, takes up to 10 µs,
 * and neither OpenSSL nor Node counts or reports it. Bytes beyond the content and its records are those of records without content.
 * A network has a bound for all its connections, or a client would open many; the busiest one ends first, so that others behind the
 * same address go on. What a connection has read when it closes stays a debt of its network, whose next handshakes wait until that
 * is forgiven: otherwise a client that connects again and again would have no bound.
 */
export class RecordLimit {
  readonly #connections = new Map<TlsConnection, Read>();
  readonly #networks = new Map<string, Debt>();
  readonly #all = new Debt(MAX_OF_ALL);
  #timer: NodeJS.Timeout | undefined;

  /**
   * Must be called at the end of the handshake. `handshakeBytes` are those that it took: records may have come with its last message.
   */
  watch(connection: TlsConnection, handshakeBytes = connection.raw.bytesRead): void {
    this.#connections.set(connection, { ...readOf(connection), bytes: handshakeBytes });
    this.#watchDebts();
  }

  #watchDebts(): void {
    this.#timer ??= setInterval(() => this.check(), CHECK_MS).unref();
  }

  #debtOf(network: string): Debt {
    const debt = this.#networks.get(network) ?? new Debt(MAX_OF_NETWORK);
    this.#networks.set(network, debt);
    return debt;
  }

  /** Must be called when the connection has closed. The rest of a record that never came counts too. */
  leave(connection: TlsConnection): void {
    const before = this.#connections.get(connection);
    if (before === undefined) return;
    this.#connections.delete(connection);
    const { emptyBytes } = countEmpty(readOf(connection), before);
    this.#add(connection, { counted: emptyBytes, newBytes: emptyBytes - countedOf(before.emptyBytes) });
  }

  /** Adds work to the debt of a network, counted as bytes of records without content. */
  charge(network: string, bytes: number): void {
    this.#debtOf(network).charge(bytes);
    this.#all.charge(bytes);
    this.#watchDebts();
  }

  /** How long a new connection of the network has to wait for its handshake. */
  delayMs(network: string): number {
    const debt = this.#networks.get(network);
    return debt === undefined ? 0 : Math.max(debt.excessMs, this.#all.excessMs);
  }

  /** Ten times a second. */
  check(): void {
    for (const [connection, before] of this.#connections)
      if (connection.socket.destroyed) this.leave(connection);
      else this.#count(connection, before);
    this.#all.settle();
    for (const [network, debt] of this.#networks) if (debt.settle() === 0) this.#networks.delete(network);
    if (this.#connections.size > 0 || this.#networks.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #count(connection: TlsConnection, before: Read): void {
    const read = countEmpty(readOf(connection), before);
    this.#connections.set(connection, read);
    const counted = countedOf(read.emptyBytes);
    this.#add(connection, { counted, newBytes: counted - countedOf(before.emptyBytes) });
  }

  #add(connection: TlsConnection, { counted, newBytes }: Pick<Share, 'counted' | 'newBytes'>): void {
    if (newBytes === 0) return;
    const share = { connection, counted, newBytes };
    this.#debtOf(connection.network).add(share);
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
  /** Of connections that were ended for them: they count for the network still, and end no other connection. */
  #endedBytes = 0;
  /** Of the last check. */
  #shares: Share[] = [];

  constructor(max: number) {
    this.#max = max;
  }

  add(share: Share): void {
    this.#bytes = Math.max(0, this.#bytes + share.newBytes);
    if (share.newBytes > 0 && !share.connection.socket.destroyed) this.#shares.push(share);
  }

  charge(bytes: number): void {
    this.#bytes += bytes;
  }

  /** How long it takes until no more is left than allowed. */
  get excessMs(): number {
    return (1000 * Math.max(0, this.#bytes + this.#endedBytes - this.#max)) / this.#max;
  }

  /** Ends the busiest connections while there is more than allowed. Returns what is not forgiven yet. */
  settle(): number {
    if (this.#bytes > this.#max) this.#endBusiest();
    this.#shares = [];
    const forgiven = (this.#max * CHECK_MS) / 1000;
    const rest = Math.max(0, forgiven - this.#bytes);
    this.#bytes = Math.max(0, this.#bytes - forgiven);
    this.#endedBytes = Math.max(0, this.#endedBytes - rest);
    return this.#bytes + this.#endedBytes;
  }

  #endBusiest(): void {
    this.#shares.sort((a, b) => b.counted - a.counted);
    for (const { connection, counted } of this.#shares) {
      if (this.#bytes <= this.#max) return;
      connection.socket.destroy();
      const ended = Math.min(counted, this.#bytes);
      this.#bytes -= ended;
      this.#endedBytes += ended;
    }
  }
}

/** The bytes that a connection had read at the last check. */
interface Read {
  readonly bytes: number;
  readonly contentBytes: number;
  readonly contentRecords: number;
  /** Bytes of records without content, since the handshake. */
  readonly emptyBytes: number;
}

function readOf({ raw, socket, contentRecords }: TlsConnection): Read {
  return { bytes: raw.bytesRead, contentBytes: socket.bytesRead, contentRecords, emptyBytes: 0 };
}

/** Adds the bytes without content that came between the two. */
function countEmpty(read: Read, before: Read): Read {
  const records = read.contentRecords - before.contentRecords;
  const expected = read.contentBytes - before.contentBytes + records * RECORD_OVERHEAD_BYTES;
  return { ...read, emptyBytes: Math.max(0, before.emptyBytes + read.bytes - before.bytes - expected) };
}
