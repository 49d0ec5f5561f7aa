/** Holds what a socket has read and its connection has not used, and pauses the socket while its client does not read. */
import type { Socket } from 'node:net';
import { freeMemory, hasOwnMemory } from '../../memory/free-memory.ts';
import type { CountGarbage } from '../../memory/garbage.ts';
import { COST, type Share } from './turns.ts';

export interface ReadQueueDependencies {
  readonly socket: Socket;
  readonly share: Share;
  /** Called with the bytes that a read leaves as garbage: most are freed as soon as they are used. */
  readonly countGarbage: CountGarbage;
  /** Uses the chunk, and returns what it leaves for a later turn. What it throws goes to `onFault`. */
  readonly use: (chunk: Buffer) => Buffer | undefined;
  /** Called when the bytes that were read are used, as far as the share of this turn allows. */
  readonly onPause: () => void;
  readonly onFault: (error: unknown) => void;
  /** Called once when the client has ended its side, and all that it sent is used. */
  readonly onEnd: () => void;
}

/** Chunks of up to 64 KiB that are read ahead at most. Keeping one costs less than pausing and resuming the socket. */
const MAX_AHEAD = 1;

/**
 * What a socket has read and its connection has not used yet. The socket is read again only when almost all of it is used and
 * the client takes its answers; otherwise both would fill the memory.
 */
export class ReadQueue {
  readonly #dependencies: ReadQueueDependencies;
  readonly #chunks: Buffer[] = [];
  /** The read that is used, while nothing else may keep it. */
  #freeable: Buffer | undefined;
  #isUsing = false;
  #isStopped = false;
  /** The client has ended its side, and that was not reported. */
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

  /** Whether what was read is being used: what that causes goes out together, at its end. */
  get isUsing(): boolean {
    return this.#isUsing;
  }

  /** Whether bytes have come that wait for their turn. */
  get hasUnused(): boolean {
    return this.#chunks.length > 0;
  }

  /** Something uses bytes of this read after it was handled: they are left to the collector. */
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

  /** Discards what is read from now on. */
  stop(): void {
    this.#isStopped = true;
    for (const chunk of this.#chunks.splice(0)) if (chunk.buffer !== this.#freeable?.buffer) freeMemory(chunk);
    if (!this.#isUsing) this.#free();
    this.#dependencies.socket.removeAllListeners('data');
    this.#wake();
  }

  /** Resolves when the client takes what is sent, or is gone. */
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
