/** Ends TLS connections that cut their content into tiny records, of which one read of a socket has thousands. */

/** Most frames of HTTP/2 that a record of a client has by itself are longer. */
const TINY_BYTES = 32;
/** Of all connections in a turn: about 10 µs each. */
const MAX_IN_A_TURN = 2048;
/** A connection that sent no more of them in this turn goes on. */
const MAX_OF_CONNECTION = 128;

/**
 * A read of 64 KiB has 2,800 records of a byte, and no pause of the socket takes effect before the last of them, only its end does. A
 * client in good faith never sends so many in one turn: frames that are so short and bring no call are limited by themselves
 * (`http2/control-frame-limit.ts`).
 */
export class TinyRecords {
  #turn = 0;
  #count = 0;
  #isCounting = false;

  /** Returns what must be called with the length of the content of each record. */
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
