/** Holds bytes that a socket has read and its connection has not used yet, and pauses the socket while its client does not read. */
import type { Socket } from 'node:net';
import { freeMemory, hasOwnMemory } from '../../memory/free-memory.ts';
import type { CountGarbage } from '../../memory/garbage.ts';
import { COST, type Share } from './turns.ts';

export interface ReadQueueDependencies {
  readonly socket: Socket;
  readonly share: Share;
  /** Called with the number of bytes that a read leaves as garbage: most reads are freed as soon as they are used. */
  readonly countGarbage: CountGarbage;
  /** Uses the chunk, and returns the bytes that it leaves for a later turn. Its errors go to `onFault`. */
  readonly use: (chunk: Buffer) => Buffer | undefined;
  /** Called when as many of the read bytes are used as the share of this turn allows. */
  readonly onPause: () => void;
  readonly onFault: (error: unknown) => void;
  /** Called once, when the client has ended its side and all its bytes are used. */
  readonly onEnd: () => void;
}

/** The most chunks, of up to 64 KiB each, that are read ahead. Keeping one costs less than pausing and resuming the socket. */
const MAX_AHEAD = 1;

/**
 * Bytes that a socket has read and its connection has not used yet. The socket is read again only when almost all of them are
 * used and the client takes its answers; otherwise requests and answers would fill the memory.
 */
export class ReadQueue {
  readonly #dependencies: ReadQueueDependencies;
  readonly #chunks: Buffer[] = [];
  /** The read whose bytes are being used, while nothing else may keep it. */
  #freeable: Buffer | undefined;
  #isUsing = false;
  #isStopped = false;
  /** The client has ended its side, which was not reported yet. */
  #hasEnded = false;
  readonly #onWritable: (() => void)[] = [];

  constructor(dependencies: ReadQueueDependencies) {
    this.#dependencies = dependencies;
    const { socket, share } = dependencies;
    socket.on('data', (chunk: Buffer) => {
      share.renew();
      share.spend(COST.read);
      this.#chunks.push(chunk);
      this.readOn();
    });
    socket.once('end', () => {
      this.#hasEnded = true;
      this.readOn();
    });
    socket.on('drain', () => {
      this.#wake();
      this.readOn();
    });
  }

  /** Whether a read is being used: the frames that it causes are sent together, at its end. */
  get isUsing(): boolean {
    return this.#isUsing;
  }

  /** Whether received bytes wait for their turn. */
  get hasUnused(): boolean {
    return this.#chunks.length > 0;
  }

  /** A call still uses bytes of this read after it was handled: the garbage collector frees them. */
  keepRead(): void {
    if (this.#freeable === undefined) return;
    this.#dependencies.countGarbage(this.#freeable.length);
    this.#freeable = undefined;
  }

  readOn(): void {
    if (this.#isStopped) return;
    const { share, onPause, onFault } = this.#dependencies;
    this.#isUsing = true;
    try {
      while (this.#chunks.length > 0 && this.#mayGoOn) this.#useFirst();
    } catch (error) {
      onFault(error);
    }
    this.#isUsing = false;
    onPause();
    if (this.#isStopped) return;
    if (this.#hasEnded && this.#chunks.length === 0) this.#reportEnd();
    this.#setReading(this.#chunks.length <= MAX_AHEAD && !this.#dependencies.socket.writableNeedDrain);
    if (share.isSpent) share.ask();
  }

  /** Discards all bytes that are read from now on. */
  stop(): void {
    this.#isStopped = true;
    for (const chunk of this.#chunks.splice(0)) if (chunk.buffer !== this.#freeable?.buffer) freeMemory(chunk);
    if (!this.#isUsing) this.#free();
    this.#dependencies.socket.removeAllListeners('data');
    this.#wake();
  }

  /** Resolves when the client takes the sent bytes, or is gone. */
  whenWritable(): Promise<void> | undefined {
    const { socket } = this.#dependencies;
    if (!socket.writableNeedDrain || socket.destroyed || this.#isStopped) return undefined;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onWritable.push(resolve);
    return promise;
  }

  get #mayGoOn(): boolean {
    const { share, socket } = this.#dependencies;
    return !share.isSpent && !socket.writableNeedDrain;
  }

  #reportEnd(): void {
    this.#hasEnded = false;
    this.#dependencies.onEnd();
  }

  #useFirst(): void {
    const chunk = this.#chunks.shift()!;
    if (hasOwnMemory(chunk)) this.#freeable = chunk;
    let rest: Buffer | undefined;
    try {
      rest = this.#dependencies.use(chunk);
    } finally {
      if (rest?.buffer !== chunk.buffer) this.#free();
    }
    if (rest !== undefined) this.#chunks.unshift(rest);
  }

  #free(): void {
    if (this.#freeable !== undefined) freeMemory(this.#freeable);
    this.#freeable = undefined;
  }

  #setReading(isReading: boolean): void {
    const { socket } = this.#dependencies;
    if (!isReading) socket.pause();
    else if (socket.isPaused()) socket.resume();
  }

  #wake(): void {
    for (const resolve of this.#onWritable.splice(0)) resolve();
  }
}
