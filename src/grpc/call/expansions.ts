import { promisify } from 'node:util';
import { gunzip, inflate } from 'node:zlib';
import { StatusError } from './status.ts';

/** At a time: each takes a thread of the pool that SQLite and the file system use too, and memory for its result. */
const MAX_RUNNING = 2;

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
  readonly #waiting = new Map<object, Job[]>();
  readonly #busy = new Set<object>();

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
      if (this.#busy.has(owner)) continue;
      const job = takeFirst(jobs);
      this.#waiting.delete(owner);
      if (jobs.length > 0) this.#waiting.set(owner, jobs);
      if (job !== undefined) this.#start(owner, job);
    }
  }

  #start(owner: object, { expansion, resolve, reject }: Job): void {
    this.#busy.add(owner);
    const done = (): void => {
      this.#busy.delete(owner);
      this.#startNext();
    };
    decompress(expansion).then(resolve, reject).finally(done);
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
