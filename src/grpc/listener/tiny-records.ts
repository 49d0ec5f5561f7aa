/** Ends TLS connections that split their content into tiny records: one read of a socket can have thousands. */

/** Content of at most this many bytes is tiny: most HTTP/2 frames that clients send in a record of their own are longer. */
const TINY_BYTES = 32;
/** The limit for all connections in one event loop turn; each record takes about 10 µs. */
const MAX_IN_A_TURN = 2048;
/** A connection that sent at most this many in the turn continues. */
const MAX_OF_CONNECTION = 128;

/**
 * A read of 64 KiB has 2,800 records of one byte. A pause of the socket takes effect only after the last of them, so the socket is
 * ended. A client in good faith never sends so many in one turn: short frames that advance no call have a limit of their own
 * (`http2/control-frame-limit.ts`).
 */
export class TinyRecords {
  #turn = 0;
  #count = 0;
  #isCounting = false;

  /** Returns a function that must be called with the content length of each record. */
  watch(socket: { destroy(): unknown }): (contentBytes: number) => void {
    let turn = -1;
    let count = 0;
    return (contentBytes) => {
      if (contentBytes >= TINY_BYTES) return;
      this.#count += 1;
      this.#endTurnLater();
      count = turn === this.#turn ? count + 1 : 1;
      turn = this.#turn;
      if (this.#count > MAX_IN_A_TURN && count > MAX_OF_CONNECTION) socket.destroy();
    };
  }

  #endTurnLater(): void {
    if (this.#isCounting) return;
    this.#isCounting = true;
    setImmediate(() => {
      this.#isCounting = false;
      this.#turn += 1;
      this.#count = 0;
    });
  }
}
