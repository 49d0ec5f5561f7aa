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

export interface CompressedMessage {
  readonly bytes: Buffer;
  readonly encoding: string;
  readonly maxBytes: number;
}

export interface PendingDecompression {
  /** Rejects with a StatusError for what cannot be expanded, or is too large. */
  readonly result: Promise<Buffer>;
  /** Must be called when the call has ended: a message that waits keeps its bytes, which no budget counts then. */
  cancel(): void;
}

/** A connection. What the connections of one network wait for must not delay another network: connections cost nothing. */
export interface MessageOwner {
  readonly network: object;
}

interface Job {
  readonly owner: MessageOwner;
  readonly message: CompressedMessage;
  readonly decode: Decode;
  readonly resolve: (bytes: Buffer) => void;
  readonly reject: (error: unknown) => void;
  isCancelled: boolean;
}

type JobsByOwner = Map<MessageOwner, Job[]>;

/**
 * Decompresses messages, few at a time: one of each connection. The networks have turns, and in each network its
 * connections.
 */
export class Decompressor {
  readonly #monotonicMs: () => number;
  readonly #noteGarbage: NoteGarbage;
  /** By network. The first one is the next, of networks and of the connections in each. */
  readonly #waiting = new Map<object, JobsByOwner>();
  readonly #busy = new Set<MessageOwner>();
  /** The length of the last result of each connection. */
  readonly #lastBytes = new WeakMap<MessageOwner, number>();
  /** When the next large result may be begun. */
  #largeFromMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(monotonicMs: () => number, noteGarbage: NoteGarbage = () => {}) {
    this.#monotonicMs = monotonicMs;
    this.#noteGarbage = noteGarbage;
  }

  /** Throws a StatusError when it is clear from the encoding that nothing can be expanded. */
  decompress(owner: MessageOwner, message: CompressedMessage): PendingDecompression {
    const decode = findDecode(message.encoding);
    const { promise: result, resolve, reject } = Promise.withResolvers<Buffer>();
    const job = { owner, message, decode, resolve, reject, isCancelled: false };
    this.#jobsOf(owner).push(job);
    this.#startNext();
    return { result, cancel: () => this.#cancel(job) };
  }

  /** The jobs of a connection that wait. They must not stay empty. */
  #jobsOf(owner: MessageOwner): Job[] {
    const owners = getOrAdd(this.#waiting, owner.network, () => new Map());
    return getOrAdd(owners, owner, () => []);
  }

  #cancel(job: Job): void {
    const { owner, reject } = job;
    job.isCancelled = true;
    const owners = this.#waiting.get(owner.network);
    const jobs = owners?.get(owner);
    const index = jobs?.indexOf(job) ?? -1;
    if (owners === undefined || jobs === undefined || index === -1) return;
    jobs.splice(index, 1);
    if (jobs.length === 0) owners.delete(owner);
    if (owners.size === 0) this.#waiting.delete(owner.network);
    reject(endedError());
  }

  #startNext(): void {
    for (const [network, owners] of this.#waiting) {
      if (this.#busy.size >= MAX_RUNNING) return;
      const owner = this.#findReady(owners);
      if (owner === undefined) continue;
      const job = takeTurn(owners, owner);
      this.#waiting.delete(network);
      if (owners.size > 0) this.#waiting.set(network, owners);
      void this.#run(job);
    }
  }

  #findReady(owners: JobsByOwner): MessageOwner | undefined {
    for (const [owner, jobs] of owners) if (!this.#busy.has(owner) && !this.#mustWait(owner, jobs)) return owner;
    return undefined;
  }

  /** While large messages have to wait, one that should be small is expanded only as far as that is true. */
  async #run(job: Job): Promise<void> {
    const { owner, message } = job;
    const { maxBytes } = message;
    const limit = this.#leftMs > 0 ? Math.min(LARGE_BYTES, maxBytes) : maxBytes;
    this.#busy.add(owner);
    try {
      const bytes = await runDecode(job, limit);
      this.#note(owner, bytes.length);
      job.resolve(bytes);
    } catch (error) {
      const isTooLarge = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
      if (isTooLarge && limit < maxBytes) this.#runAgain(job);
      else {
        // How much was expanded before the failure is not known. So the most that these bytes can expand to counts.
        this.#note(owner, Math.min(limit, MAX_EXPANSION * message.bytes.length));
        job.reject(isTooLarge ? tooLargeError(maxBytes) : invalidError());
      }
    }
    this.#busy.delete(owner);
    this.#startNext();
  }

  /** It is large, and waits for its turn. */
  #runAgain(job: Job): void {
    const { owner, reject, isCancelled } = job;
    this.#noteGarbage(2 * LARGE_BYTES);
    this.#lastBytes.set(owner, LARGE_BYTES + 1);
    if (isCancelled) reject(endedError());
    else this.#jobsOf(owner).unshift(job);
  }

  #note(owner: MessageOwner, bytes: number): void {
    this.#lastBytes.set(owner, bytes);
    // Its parts and their whole.
    this.#noteGarbage(2 * bytes);
    if (bytes > LARGE_BYTES)
      this.#largeFromMs = Math.max(this.#largeFromMs, this.#monotonicMs()) + bytes / LARGE_BYTES_PER_MS;
  }

  /** How long large messages have to wait. */
  get #leftMs(): number {
    return this.#largeFromMs - this.#monotonicMs();
  }

  #mustWait(owner: MessageOwner, [first]: readonly Job[]): boolean {
    const expected = this.#lastBytes.get(owner) ?? MAX_EXPANSION * (first?.message.bytes.length ?? 0);
    const leftMs = this.#leftMs;
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

function getOrAdd<K, V>(map: Map<K, V>, key: K, create: () => V): V {
  const value = map.get(key) ?? create();
  map.set(key, value);
  return value;
}

/** The first job of the connection, whose next one comes after those of all others of its network. */
function takeTurn(owners: JobsByOwner, owner: MessageOwner): Job {
  const jobs = owners.get(owner)!;
  const job = jobs.shift()!;
  owners.delete(owner);
  if (jobs.length > 0) owners.set(owner, jobs);
  return job;
}

function findDecode(encoding: string): Decode {
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
  return decode;
}

async function runDecode({ message, decode }: Job, maxOutputLength: number): Promise<Buffer> {
  return await decode(message.bytes, { maxOutputLength });
}

function endedError(): StatusError {
  return new StatusError('CANCELLED', 'The call has ended');
}

function tooLargeError(maxBytes: number): StatusError {
  return new StatusError('RESOURCE_EXHAUSTED', `Cannot read the message: it must be at most ${maxBytes} bytes`);
}

function invalidError(): StatusError {
  return new StatusError('INTERNAL', 'Cannot read the message: it is not compressed as its encoding says');
}
