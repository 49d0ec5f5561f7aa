/** Ends TLS connections that are busy with records without content, such as floods of key updates. */

const CHECK_MS = 100;
/** The most bytes that a TLS record has beside its content, without padding: its head, its type, its authentication tag. */
const RECORD_OVERHEAD_BYTES = 22;
/** Bytes of records without content, in a second: 5,000 records. */
const MAX_PER_SECOND = 5000 * 27;

/** The two sides of a connection: what came, and what TLS made of it. */
export interface TlsConnection {
  readonly raw: { readonly bytesRead: number };
  readonly socket: { readonly bytesRead: number; readonly destroyed: boolean; destroy(): void };
}

/**
 * Ends TLS connections that are busy with anything but content: a change of keys (KeyUpdate of TLS 1.3) has 27 bytes, takes up to 10 µs,
 * and neither OpenSSL nor Node counts or reports it. At worst, each byte of content comes in a record of its own; bytes beyond that are
 * those of records without content.
 */
export class RecordLimit {
  readonly #connections = new Map<TlsConnection, Read>();
  #timer: NodeJS.Timeout | undefined;

  /** Must be called at the end of the handshake. */
  watch(connection: TlsConnection): void {
    this.#connections.set(connection, readOf(connection, 0));
    this.#timer ??= setInterval(() => this.check(), CHECK_MS).unref();
  }

  /** Ten times a second. */
  check(): void {
    for (const [connection, before] of this.#connections)
      if (connection.socket.destroyed) this.#connections.delete(connection);
      else this.#checkOne(connection, before);
    if (this.#connections.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #checkOne(connection: TlsConnection, before: Read): void {
    const { bytes, contentBytes } = readOf(connection, 0);
    const expected = (contentBytes - before.contentBytes) * (1 + RECORD_OVERHEAD_BYTES);
    const emptyBytes = Math.max(0, before.emptyBytes + bytes - before.bytes - expected);
    if (emptyBytes > MAX_PER_SECOND) connection.socket.destroy();
    const forgiven = (MAX_PER_SECOND * CHECK_MS) / 1000;
    this.#connections.set(connection, { bytes, contentBytes, emptyBytes: Math.max(0, emptyBytes - forgiven) });
  }
}

/** The bytes that a connection had read at the last check. */
interface Read {
  readonly bytes: number;
  readonly contentBytes: number;
  /** The recent bytes of records without content. */
  readonly emptyBytes: number;
}

function readOf({ raw, socket }: TlsConnection, emptyBytes: number): Read {
  return { bytes: raw.bytesRead, contentBytes: socket.bytesRead, emptyBytes };
}
