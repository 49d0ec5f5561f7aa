/** Expands gzip and deflate messages, few at a time, and refuses those that expand beyond the limit (decompression bombs). */
import { promisify } from 'node:util';
import { gunzip, inflate } from 'node:zlib';
import type { CountGarbage } from '../../memory/garbage.ts';
import { type Linked, LinkedQueue } from '../../memory/linked-queue.ts';
import { DecompressionTurns, type MessageOwner } from './decompression-turns.ts';
import { MAX_SHOWN_LENGTH, StatusError } from './status.ts';

/**
 * How many messages are expanded at a time. Each takes memory for its result, and a thread of the pool that SQLite and the file
 * system use too. One of them may be large: two would take a core each for milliseconds.
 */
const MAX_RUNNING = 2;
/**
 * Results larger than this are paced: they are memory outside the heap that is garbage after the call, and at 64 MB of such
 * garbage V8 marks the whole heap, which stops the event loop for milliseconds.
 */
const LARGE_BYTES = 262_144;
/** The pace of large results: 64 MB a second, for all connections together. */
const LARGE_BYTES_PER_MS = 65_536;
/** The most bytes into which DEFLATE can expand one byte. */
const MAX_EXPANSION = 1032;
/** The default chunk size of zlib in bytes. */
const PIECE_BYTES = 16_384;
/** Results of at least this many bytes share their memory with no other bytes. */
const MIN_OWN_BYTES = 65_536;

type Decode = (bytes: Buffer, options: { maxOutputLength: number; chunkSize: number }) => Promise<Buffer>;

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
  /** Rejects with a StatusError if the message cannot be expanded or is too large. */
  readonly result: Promise<Buffer>;
  /** Must be called when the call has ended: a waiting message keeps its bytes, which no budget counts any more. */
  cancel(): void;
}

interface Job extends Linked<Job> {
  readonly message: CompressedMessage;
  readonly decode: Decode;
  readonly resolve: (bytes: Buffer) => void;
  readonly reject: (error: unknown) => void;
  isCancelled: boolean;
}

/** The waiting messages of one connection; the first one may be under way. */
interface OwnerJobs extends Linked<OwnerJobs> {
  readonly owner: MessageOwner;
  readonly jobs: LinkedQueue<Job>;
  /** Where the connection waits; undefined while one of its messages is expanded. */
  turns: DecompressionTurns<OwnerJobs> | undefined;
}

/** Decompresses few messages at a time: at most one of each connection, and at most one large one. */
export class Decompressor {
  readonly #monotonicMs: () => number;
  readonly #countGarbage: CountGarbage;
  readonly #owners = new Map<MessageOwner, OwnerJobs>();
  /** Connections whose next message is likely small, and connections whose next message is likely large. */
  readonly #small = new DecompressionTurns<OwnerJobs>();
  readonly #large = new DecompressionTurns<OwnerJobs>();
  #running = 0;
  #isLargeRunning = false;
  /** The length of the last result of each connection. */
  readonly #lastBytes = new WeakMap<MessageOwner, number>();
  /** When the next large result may be begun. */
  #largeFromMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(monotonicMs: () => number, countGarbage: CountGarbage = () => {}) {
    this.#monotonicMs = monotonicMs;
    this.#countGarbage = countGarbage;
  }

  /** Throws a StatusError for an encoding that cannot be expanded. */
  decompress(owner: MessageOwner, message: CompressedMessage): PendingDecompression {
    const decode = findDecode(message.encoding);
    const { promise: result, resolve, reject } = Promise.withResolvers<Buffer>();
    const job: Job = { message, decode, resolve, reject, isCancelled: false, previous: undefined, next: undefined };
    const waiting = this.#waitingOf(owner);
    waiting.jobs.add(job);
    if (waiting.jobs.first === job) this.#wait(waiting);
    this.#startNext();
    return { result, cancel: () => this.#cancel(waiting, job) };
  }

  #waitingOf(owner: MessageOwner): OwnerJobs {
    let waiting = this.#owners.get(owner);
    if (waiting === undefined) {
      waiting = { owner, jobs: new LinkedQueue(), turns: undefined, previous: undefined, next: undefined };
      this.#owners.set(owner, waiting);
    }
    return waiting;
  }

  /** Queues the connection if it has a message. */
  #wait(waiting: OwnerJobs): void {
    waiting.turns?.delete(waiting);
    const { first } = waiting.jobs;
    if (first === undefined) {
      waiting.turns = undefined;
      this.#owners.delete(waiting.owner);
      return;
    }
    const expected = this.#lastBytes.get(waiting.owner) ?? MAX_EXPANSION * first.message.bytes.length;
    waiting.turns = expected > LARGE_BYTES ? this.#large : this.#small;
    waiting.turns.add(waiting);
  }

  #cancel(waiting: OwnerJobs, job: Job): void {
    job.isCancelled = true;
    const wasFirst = waiting.jobs.first === job;
    if ((wasFirst && waiting.turns === undefined) || !waiting.jobs.delete(job)) return;
    if (wasFirst) this.#wait(waiting);
    job.reject(endedError());
  }

  #startNext(): void {
    while (this.#running < MAX_RUNNING) {
      const isLarge = this.#mayStartLarge;
      const waiting = isLarge ? this.#large.take() : this.#small.take();
      if (waiting === undefined) return;
      waiting.turns = undefined;
      void this.#run(waiting, isLarge);
    }
  }

  /** Tries again later when a large message must wait for its time. */
  get #mayStartLarge(): boolean {
    if (this.#large.isEmpty || this.#isLargeRunning) return false;
    const leftMs = this.#largeFromMs - this.#monotonicMs();
    if (leftMs > 0) this.#startLater(leftMs);
    return leftMs <= 0;
  }

  async #run(waiting: OwnerJobs, isLarge: boolean): Promise<void> {
    const job = waiting.jobs.first!;
    this.#running += 1;
    if (isLarge) this.#isLargeRunning = true;
    const isDone = await this.#expand(waiting.owner, job, isLarge);
    this.#running -= 1;
    if (isLarge) this.#isLargeRunning = false;
    if (isDone) waiting.jobs.delete(job);
    this.#wait(waiting);
    this.#startNext();
  }

  /**
   * A message that should be small is expanded up to the limit of small ones: otherwise a connection that sent a small one first
   * would overtake all others with a large one. Returns false when it must wait for its turn as a large one.
   */
  async #expand(owner: MessageOwner, job: Job, isLarge: boolean): Promise<boolean> {
    const { bytes: compressed, maxBytes } = job.message;
    const limit = isLarge ? maxBytes : Math.min(LARGE_BYTES, maxBytes);
    const pieceBytes = choosePieceBytes(job.message, limit, this.#lastBytes.get(owner) ?? 0);
    try {
      // One byte more: zlib begins a second piece once the first is full.
      const bytes = await job.decode(compressed, { maxOutputLength: limit, chunkSize: pieceBytes + 1 });
      this.#recordLength(owner, bytes.length, pieceBytes);
      job.resolve(bytes);
    } catch (error) {
      const isTooLarge = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
      if (isTooLarge && limit < maxBytes && !job.isCancelled) {
        this.#countGarbage(2 * LARGE_BYTES);
        this.#lastBytes.set(owner, LARGE_BYTES + 1);
        return false;
      }
      // How much was expanded before the failure is unknown, so the most that these bytes can expand to counts.
      this.#recordLength(owner, Math.min(limit, MAX_EXPANSION * compressed.length));
      job.reject(isTooLarge ? tooLargeError(maxBytes) : invalidError());
    }
    return true;
  }

  /** `pieceBytes` is the size of the memory into which it was expanded, which may be larger. */
  #recordLength(owner: MessageOwner, length: number, pieceBytes = 0): void {
    this.#lastBytes.set(owner, length);
    const bytes = Math.max(length, pieceBytes);
    // Counts both the pieces and their concatenation.
    this.#countGarbage(2 * bytes);
    if (bytes > LARGE_BYTES)
      this.#largeFromMs = Math.max(this.#largeFromMs, this.#monotonicMs()) + bytes / LARGE_BYTES_PER_MS;
  }

  #startLater(ms: number): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#startNext();
    }, Math.ceil(ms)).unref();
  }
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
      `Cannot read the message: grpc-encoding must be one of ${ACCEPTED_ENCODINGS}, got "${encoding.slice(0, MAX_SHOWN_LENGTH)}"`,
    );
  return decode;
}

/**
 * The whole message is expanded into one piece if its length is known: each piece takes a trip to a thread, and several pieces are
 * copied together on this thread. A gzip message names its length (RFC 1952, section 2.3.1, ISIZE); other messages are assumed to
 * be as long as the last one of their connection. A message gets no more memory than it could need.
 */
function choosePieceBytes({ bytes, encoding }: CompressedMessage, limit: number, lastBytes: number): number {
  const isGzip = encoding === 'gzip' && bytes.length >= 4;
  const expected = isGzip ? bytes.readUInt32LE(bytes.length - 4) : lastBytes;
  return Math.max(PIECE_BYTES, Math.min(expected, limit, MAX_EXPANSION * bytes.length));
}

/** Frees the memory of an expanded message that is used no more. As garbage it would count until a collection finds it. */
export function freeExpanded(bytes: Buffer): void {
  if (bytes.length >= MIN_OWN_BYTES && bytes.buffer instanceof ArrayBuffer) bytes.buffer.transfer(0);
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
