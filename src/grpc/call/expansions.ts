import { promisify } from 'node:util';
import { gunzip, inflate } from 'node:zlib';
import type { NoteGarbage } from '../../memory/garbage.ts';
import { StatusError } from './status.ts';

/** At a time: each takes a thread of the pool that SQLite and the file system use too, and memory for its result. */
const MAX_RUNNING = 2;
/**
 * Results larger than this are paced: they are memory outside the heap, dead after their call, and when 64 MB of it have
 * gathered, the whole heap is marked, which stops the event loop for milliseconds.
 */
const LARGE_BYTES = 262_144;
/** 64 MB a second, for all connections together. */
const LARGE_BYTES_PER_MS = 65_536;
/** The most bytes into which DEFLATE can expand one byte. */
const MAX_EXPANSION = 1032;

type Decode = (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>;

const DECODE: ReadonlyMap<string, Decode> = new Map([
  ['gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
]);

/** Encodings that clients may use, as `grpc-accept-encoding` names them. */
export const ACCEPTED_ENCODINGS = 'identity,gzip,deflate';

export interface Expansion {
  readonly bytes: Buffer;
  readonly encoding: string;
  readonly maxBytes: number;
  /** An ended call is not expanded any more. */
  readonly isEnded: () => boolean;
}

interface Job {
  readonly expansion: Expansion;
  readonly resolve: (bytes: Buffer) => void;
  readonly reject: (error: unknown) => void;
}

/** Expands compressed messages, few at a time: one of each connection, and the connections in turns. */
export class Expansions {
  readonly #monotonicMs: () => number;
  readonly #noteGarbage: NoteGarbage;
  readonly #waiting = new Map<object, Job[]>();
  readonly #busy = new Set<object>();
  /** The length of the last result of each connection. */
  readonly #lastBytes = new WeakMap<object, number>();
  /** When the next large result may be begun. */
  #largeFromMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(monotonicMs: () => number, noteGarbage: NoteGarbage = () => {}) {
    this.#monotonicMs = monotonicMs;
    this.#noteGarbage = noteGarbage;
  }

  /** Rejects with a StatusError for what cannot be expanded, or is too large. */
  expand(owner: object, expansion: Expansion): Promise<Buffer> {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    const jobs = this.#waiting.get(owner) ?? [];
    jobs.push({ expansion, resolve, reject });
    this.#waiting.set(owner, jobs);
    this.#startNext();
    return promise;
  }

  #startNext(): void {
    for (const [owner, jobs] of this.#waiting) {
      if (this.#busy.size >= MAX_RUNNING) return;
      if (this.#busy.has(owner) || this.#mustWait(owner, jobs)) continue;
      const job = takeFirst(jobs);
      this.#waiting.delete(owner);
      if (jobs.length > 0) this.#waiting.set(owner, jobs);
      if (job !== undefined) this.#start(owner, job);
    }
  }

  #start(owner: object, { expansion, resolve, reject }: Job): void {
    this.#busy.add(owner);
    const done = (bytes: number): void => {
      this.#busy.delete(owner);
      this.#lastBytes.set(owner, bytes);
      // Its parts and their whole.
      this.#noteGarbage(2 * bytes);
      if (bytes > LARGE_BYTES)
        this.#largeFromMs = Math.max(this.#largeFromMs, this.#monotonicMs()) + bytes / LARGE_BYTES_PER_MS;
      this.#startNext();
    };
    decompress(expansion).then(
      (bytes) => {
        resolve(bytes);
        done(bytes.length);
      },
      (error: unknown) => {
        reject(error);
        // It was expanded up to where it failed.
        done(expansion.maxBytes);
      },
    );
  }

  #mustWait(owner: object, [first]: readonly Job[]): boolean {
    const expected = this.#lastBytes.get(owner) ?? MAX_EXPANSION * (first?.expansion.bytes.length ?? 0);
    const leftMs = this.#largeFromMs - this.#monotonicMs();
    if (expected <= LARGE_BYTES || leftMs <= 0) return false;
    this.#startLater(leftMs);
    return true;
  }

  #startLater(ms: number): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#startNext();
    }, Math.ceil(ms)).unref();
  }
}

/** The first of a call that has not ended. Those of ended calls are dropped, wherever they wait. */
function takeFirst(jobs: Job[]): Job | undefined {
  const live: Job[] = [];
  for (const job of jobs.splice(0)) {
    if (job.expansion.isEnded()) job.reject(new StatusError('CANCELLED', 'The call has ended'));
    else live.push(job);
  }
  const first = live.shift();
  jobs.push(...live);
  return first;
}

async function decompress({ bytes, encoding, maxBytes }: Expansion): Promise<Buffer> {
  // https://github.com/grpc/grpc/blob/master/doc/compression.md: the flag and the header contradict each other.
  if (encoding === 'identity')
    throw new StatusError(
      'INTERNAL',
      'Cannot read the message: it is flagged as compressed, but there is no grpc-encoding',
    );
  const decode = DECODE.get(encoding);
  if (decode === undefined)
    throw new StatusError(
      'UNIMPLEMENTED',
      `Cannot read the message: grpc-encoding must be one of ${ACCEPTED_ENCODINGS}, got "${encoding}"`,
    );
  try {
    return await decode(bytes, { maxOutputLength: maxBytes });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE')
      throw new StatusError('RESOURCE_EXHAUSTED', `Cannot read the message: it must be at most ${maxBytes} bytes`);
    throw new StatusError('INTERNAL', 'Cannot read the message: it is not compressed as its encoding says');
  }
}
