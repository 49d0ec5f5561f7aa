/**
 * Writes text to a file descriptor without waiting for its reader, and goes on when it cannot be written. What waits is bounded:
 * beyond it, text is dropped and counted.
 */
import { write, writeSync } from 'node:fs';

/** What a reader has not taken, or a full disk has no room for, in bytes. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
/** Of one write: only as much is in doubt at the end of the process. */
const MAX_WRITE_BYTES = 65_536;
const RETRY_MS = 20;
/** At the end of the process, for a reader that is slow. */
const END_MS = 3000;
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
  /** A write is under way, or will be tried again: no other begins. */
  #isBusy = false;
  /** Bytes of the write under way, which may go out after the end of this process. */
  #begunBytes = 0;
  #begunMs = 0;
  #dropped = 0;
  /** Its reader has closed it. */
  #isClosed = false;

  constructor(options: UnblockedOutputOptions) {
    this.#options = options;
  }

  write(text: string): void {
    if (this.#isClosed) return;
    const bytes = Buffer.byteLength(text);
    if (this.#waitingBytes + bytes > MAX_WAITING_BYTES) {
      this.#dropped += 1;
      return;
    }
    this.#texts.push(text);
    this.#waitingBytes += bytes;
    if (!this.#isBusy) this.#writeNext();
  }

  /** Writes what waits and what `addLast` writes, in this turn: for the end of the process. Waits for a slow reader, but not for long. */
  end(addLast: () => void): void {
    this.#isBusy = true;
    addLast();
    const nowMs = performance.now();
    // The descriptor blocks, and its reader has stopped.
    if (this.#begunBytes > 0 && nowMs - this.#begunMs > END_MS) return;
    this.#rest = this.#rest.subarray(this.#begunBytes);
    while (this.#takeNext() && performance.now() < nowMs + END_MS) this.#writeNow();
  }

  #writeNow(): void {
    try {
      this.#accept(writeSync(this.#options.fd, this.#rest, 0, Math.min(this.#rest.length, MAX_WRITE_BYTES)));
    } catch (error) {
      if (this.#mayRetry(error as NodeJS.ErrnoException)) sleepNow(RETRY_MS);
    }
  }

  #writeNext(): void {
    this.#isBusy = this.#takeNext();
    if (!this.#isBusy) return;
    this.#begunBytes = Math.min(this.#rest.length, MAX_WRITE_BYTES);
    this.#begunMs = performance.now();
    write(this.#options.fd, this.#rest, 0, this.#begunBytes, null, (error, written) => {
      this.#begunBytes = 0;
      if (error === null) {
        this.#accept(written);
        this.#writeNext();
      } else if (this.#mayRetry(error)) setTimeout(() => this.#writeNext(), RETRY_MS).unref();
    });
  }

  /** Returns false when nothing waits. */
  #takeNext(): boolean {
    if (this.#isClosed) return false;
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

  /** The reader may be slow, or the disk full. One that has closed is gone, with all that waits for it. */
  #mayRetry({ code }: NodeJS.ErrnoException): boolean {
    this.#isClosed = code === 'EPIPE' || code === 'EBADF';
    if (!this.#isClosed) return true;
    this.#texts = [];
    this.#rest = NOTHING;
    return false;
  }
}

/** Stops the thread, which has no event loop any more. */
function sleepNow(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
