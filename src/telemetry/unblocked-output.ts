/**
 * Writes text to a file descriptor without waiting for its reader, and goes on when it cannot be written. What waits is bounded:
 * beyond it, text is dropped and counted.
 */
import { write, writeSync } from 'node:fs';

/** What a reader has not taken, or a full disk has no room for, in bytes. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
const RETRY_MS = 20;
/** At the end of the process, for a reader that is slow. One that has stopped reading is not waited for. */
const END_MS = 1000;
const NOTHING = Buffer.alloc(0);

export interface UnblockedOutputOptions {
  readonly fd: number;
  /** Returns a line that says how many writes were dropped. */
  readonly describeDropped: (count: number) => string;
}

export class UnblockedOutput {
  readonly #options: UnblockedOutputOptions;
  /** What comes after `#rest`. */
  #texts: string[] = [];
  #waitingBytes = 0;
  /** Is written, or tried again. */
  #rest: Buffer = NOTHING;
  #isWriting = false;
  #dropped = 0;
  /** Its reader has closed it. */
  #isClosed = false;

  constructor(options: UnblockedOutputOptions) {
    this.#options = options;
  }

  write(text: string): void {
    const bytes = Buffer.byteLength(text);
    if (this.#isClosed) return;
    if (this.#waitingBytes + bytes > MAX_WAITING_BYTES) {
      this.#dropped += 1;
      return;
    }
    this.#texts.push(text);
    this.#waitingBytes += bytes;
    this.#writeNext();
  }

  /** Writes what waits, in this turn: for the end of the process. */
  end(): void {
    // A write that was begun goes on without this turn.
    if (this.#isWriting) this.#rest = NOTHING;
    const endMs = performance.now() + END_MS;
    while (!this.#isClosed && this.#takeNext() && performance.now() < endMs) {
      try {
        this.#accept(writeSync(this.#options.fd, this.#rest));
      } catch (error) {
        this.#fail(error as NodeJS.ErrnoException);
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS);
      }
    }
  }

  #writeNext(): void {
    if (this.#isWriting || this.#isClosed || !this.#takeNext()) return;
    this.#isWriting = true;
    write(this.#options.fd, this.#rest, (error, written) => {
      this.#isWriting = false;
      if (error === null) {
        this.#accept(written);
        this.#writeNext();
      } else if (this.#fail(error)) setTimeout(() => this.#writeNext(), RETRY_MS).unref();
    });
  }

  /** Returns false when nothing waits. */
  #takeNext(): boolean {
    if (this.#rest.length > 0) return true;
    if (this.#dropped > 0) this.#texts.push(this.#options.describeDropped(this.#dropped));
    this.#dropped = 0;
    this.#rest = Buffer.from(this.#texts.join(''));
    this.#texts = [];
    return this.#rest.length > 0;
  }

  #accept(written: number): void {
    this.#rest = this.#rest.subarray(written);
    this.#waitingBytes = Math.max(0, this.#waitingBytes - written);
  }

  /** Returns whether it may succeed later: the reader is slow, or the disk is full. */
  #fail({ code }: NodeJS.ErrnoException): boolean {
    this.#isClosed = code === 'EPIPE' || code === 'EBADF';
    return !this.#isClosed;
  }
}
