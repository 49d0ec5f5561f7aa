/** Tells when the calls of a connection went on last, by which it gives its place to another one. */
import type { Socket } from 'node:net';
import { countTaken, PROGRESS_BYTES } from '../../connections/socket-progress.ts';

export class Progress {
  readonly #socket: Socket;
  readonly #monotonicMs: () => number;
  #changedMs: number;
  /** Bytes of calls that came or went since then. */
  #bytes = 0;
  /** What the kernel had taken when it was counted last. */
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

  /** A call goes on: the connection has not waited for its client until now. */
  mark(): void {
    this.#hasChanged = false;
    this.#bytes = 0;
    this.#changedMs = this.#monotonicMs();
  }

  /** The same at the end of the read that is being used: it may have a thousand calls. */
  markLater(): void {
    this.#hasChanged = true;
  }

  endRead(): void {
    if (this.#hasChanged) this.mark();
  }

  /** The client sent or took bytes of a call, in frames of any size: with many of them, the call goes on. */
  count(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes >= PROGRESS_BYTES) this.mark();
  }

  /** Must be called now and then. The kernel takes a long write in parts, and no event reports them. */
  countTaken(): void {
    const isSending = this.#socket.writableLength > 0;
    const bytes = countTaken(this.#socket);
    if (isSending && bytes - this.#takenBytes < PROGRESS_BYTES) return;
    this.#takenBytes = bytes;
    if (isSending) this.mark();
  }
}
