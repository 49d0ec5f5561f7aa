/** Ends TLS connections that flood the server with records without content, such as key updates. */

const CHECK_MS = 100;
/** The most bytes of a TLS record beside its content, without padding: header, nonce (TLS 1.2), authentication tag. */
const RECORD_OVERHEAD_BYTES = 29;
const MAX_RECORD_BYTES = 16_384 + 256 + 5;
/** The limit of records without content for all connections of a network, in bytes a second: 5,000 records, or 50 ms of work. */
const MAX_OF_NETWORK = 5000 * 27;
/** The same limit for all networks together: 20,000 records, or 200 ms. */
const MAX_OF_ALL = 4 * MAX_OF_NETWORK;

/** A connection's raw TCP bytes, and the content that TLS decrypted from them. */
export interface TlsConnection {
  readonly network: string;
  readonly raw: { readonly bytesRead: number };
  /** Node reports the content of each record separately. */
  readonly contentRecords: number;
  readonly socket: { readonly bytesRead: number; readonly destroyed: boolean; destroy(): void };
}

/**
 * Ends TLS connections that flood the server with records without content: a key update (KeyUpdate of TLS 1.3) has 27 bytes and takes
 * up to 10 µs, and neither OpenSSL nor Node counts or reports it. All bytes beyond the content and its records count as such records.
 * A network has one limit for all its connections, or a client would open many; the busiest one ends first, so that others behind
 * the same address continue. When a connection closes, its bytes stay a debt of its network, whose next handshakes wait until the
 * debt is forgiven: otherwise a client that reconnects again and again would have no limit.
 */
export class RecordLimit {
  readonly #connections = new Map<TlsConnection, Read>();
  readonly #networks = new Map<string, Debt>();
  readonly #all = new Debt(MAX_OF_ALL);
  #timer: NodeJS.Timeout | undefined;

  /**
   * Must be called at the end of the handshake, which took `handshakeBytes`: records may have come with its last message.
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

  /** Must be called when the connection has closed. An incomplete record counts too. */
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

  /** Checks all connections, ten times a second. */
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

/** A record may be incomplete, and its content is then not decrypted yet. */
function countedOf(emptyBytes: number): number {
  return Math.max(0, emptyBytes - MAX_RECORD_BYTES);
}

interface Share {
  readonly connection: TlsConnection;
  /** Bytes without content since the handshake. */
  readonly counted: number;
  /** New bytes without content at the last check; below 0 when bytes that counted as such turned out to have content. */
  readonly newBytes: number;
}

/** The recent bytes without content of several connections; each second forgives the limit of one second. */
class Debt {
  readonly #max: number;
  #bytes = 0;
  /** Bytes of connections that were ended for them: they still count for the network, but end no other connection. */
  #endedBytes = 0;
  /** The time of the last check. */
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

  /** How many milliseconds until the debt is within the limit. */
  get excessMs(): number {
    return (1000 * Math.max(0, this.#bytes + this.#endedBytes - this.#max)) / this.#max;
  }

  /** Ends the busiest connections while the limit is exceeded. Returns the bytes that are not forgiven yet. */
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

/** Adds the bytes without content that arrived between the two checks. */
function countEmpty(read: Read, before: Read): Read {
  const records = read.contentRecords - before.contentRecords;
  const expected = read.contentBytes - before.contentBytes + records * RECORD_OVERHEAD_BYTES;
  return { ...read, emptyBytes: Math.max(0, before.emptyBytes + read.bytes - before.bytes - expected) };
}
