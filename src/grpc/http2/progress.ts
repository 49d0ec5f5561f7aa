/** Records when the calls of a connection last made progress, which decides whether it gives its place to another one. */
import type { Socket } from 'node:net';
import { countTaken, PROGRESS_BYTES } from '../../connections/socket-progress.ts';

export class Progress {
  readonly #socket: Socket;
  readonly #monotonicMs: () => number;
  #changedMs: number;
  /** Bytes of calls that were received or sent since then. */
  #bytes = 0;
  /** The bytes that the kernel had taken at the last count. */
  #takenBytes = 0;
  /** A call has begun or ended in the read that is being used. */
  #hasChanged = false;

  constructor(socket: Socket, monotonicMs: () => number) {
    this.#socket = socket;
    this.#monotonicMs = monotonicMs;
    this.#changedMs = monotonicMs();
  }

  get changedMs(): number {
    return this.#changedMs;
  }

  /** A call makes progress: the connection has not waited for its client until now. */
  mark(): void {
    this.#hasChanged = false;
    this.#bytes = 0;
    this.#changedMs = this.#monotonicMs();
  }

  /** Does the same once at the end of the current read, which may have a thousand calls. */
  markLater(): void {
    this.#hasChanged = true;
  }

  endRead(): void {
    if (this.#hasChanged) this.mark();
  }

  /** Counts bytes of a call that the client sent or took, in frames of any size: enough of them are progress. */
  count(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes >= PROGRESS_BYTES) this.mark();
  }

  /** Must be called regularly: the kernel takes a long write in parts, and no event reports them. */
  countTaken(): void {
    const isSending = this.#socket.writableLength > 0;
    const bytes = countTaken(this.#socket);
    if (isSending && bytes - this.#takenBytes < PROGRESS_BYTES) return;
    this.#takenBytes = bytes;
    if (isSending) this.mark();
  }
}
