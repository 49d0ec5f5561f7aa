/**
 * Writes text to a file descriptor without waiting for its reader, and ignores write errors. The waiting text is limited: beyond
 * the limit, text is dropped and counted.
 */
import { write, writeSync } from 'node:fs';

/** The most bytes that wait for a slow reader or a full disk. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
/** The most bytes of one write: only so many are in doubt at the end of the process. */
const MAX_WRITE_BYTES = 65_536;
const RETRY_MS = 20;
/** How long the end of the process waits for a slow reader. */
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
  /** The text that is being written or retried. */
  #rest: Buffer = NOTHING;
  /** A write is under way or will be retried: no other begins. */
  #isBusy = false;
  /** Bytes of the write under way, which may be sent after the end of this process. */
  #begunBytes = 0;
  #begunMs = 0;
  #dropped = 0;
  /** The reader has closed the descriptor. */
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

  /** Writes the waiting text and that of `addLast` synchronously, at the end of the process. Waits briefly for a slow reader. */
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

  /** Handles a write error: retries for a slow reader or a full disk; if the reader has closed, drops the waiting text. */
  #mayRetry({ code }: NodeJS.ErrnoException): boolean {
    this.#isClosed = code === 'EPIPE' || code === 'EBADF';
    if (!this.#isClosed) return true;
    this.#texts = [];
    this.#rest = NOTHING;
    return false;
  }
}

/** Blocks the thread, whose event loop has ended. */
function sleepNow(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
