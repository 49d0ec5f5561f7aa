/** Refuses a request that is not gRPC with 405 or 415, and bounds how much of it is read. */
import { type Linked, LinkedQueue } from '../../memory/linked-queue.ts';
import { COST } from '../budget/turns.ts';
import { encodeHeaderBlock } from '../hpack/hpack-encoder.ts';
import type { Headers } from '../http2/request-head.ts';
import type { Http2Stream } from '../http2/stream.ts';
import type { StreamListener } from '../http2/stream-listener.ts';
import { MAX_SHOWN_LENGTH } from '../protocol/status.ts';

/** A longer request is reset (RFC 9113 §8.1): reading its rest would be wasted work. */
const MAX_REQUEST_BYTES = 16_384;
/** A request that takes longer is reset too: it would occupy a stream and a connection. */
const MAX_REQUEST_MS = 3000;
/** The limit for all connections together. One more ends the oldest: each keeps a stream alive, which garbage collections copy. */
const MAX_UNENDED = 256;
const WAITING_REQUEST_BYTES = 2048;
/** How many error texts of one connection may wait for a window. Each keeps a request alive, which garbage collections copy. */
const MAX_WAITING_BYTES = 16_384;
const NOTHING = Buffer.alloc(0);

export interface Refusal {
  readonly status: '405' | '415';
  readonly reason: string;
  readonly fields?: readonly (readonly [name: string, value: string])[];
}

/** A gRPC request is a POST with its own content type; a subtype names a message encoding other than protobuf. */
export function refusalOf(headers: Headers): Refusal | undefined {
  const contentType = headers.get('content-type') ?? '';
  if (!/^application\/grpc(\+proto)?[ \t]*(;|$)/i.test(contentType))
    return {
      status: '415',
      reason: `Cannot answer: content-type must be application/grpc or application/grpc+proto, got "${contentType.slice(0, MAX_SHOWN_LENGTH)}"`,
    };
  const method = headers.get(':method') ?? '';
  if (method === 'POST') return undefined;
  return {
    status: '405',
    reason: `Cannot answer: the method must be POST, got "${method.slice(0, MAX_SHOWN_LENGTH)}"`,
    fields: [['allow', 'POST']],
  };
}

/**
 * A request that is not gRPC. Its status is sent at once, the reason when the request ends. So a client that is still sending
 * reads a complete answer without a reset, and the rest of its request is checked like any other.
 */
export class RefusedRequest implements StreamListener, Linked<RefusedRequest> {
  previous: RefusedRequest | undefined;
  next: RefusedRequest | undefined;
  readonly #stream: Http2Stream;
  readonly #body: Buffer;
  readonly #onEnd: (request: RefusedRequest) => void;
  readonly #timer: NodeJS.Timeout;
  #receivedBytes = 0;
  #isStopped = false;
  #isShed = false;

  constructor(dependencies: {
    readonly stream: Http2Stream;
    readonly headers: Headers;
    readonly refusal: Refusal;
    readonly onEnd: (request: RefusedRequest) => void;
  }) {
    const { status, reason, fields = [] } = dependencies.refusal;
    this.#stream = dependencies.stream;
    this.#onEnd = dependencies.onEnd;
    // RFC 9110 §9.3.2: an answer to HEAD has no content.
    this.#body = dependencies.headers.get(':method') === 'HEAD' ? NOTHING : Buffer.from(`${reason}\n`);
    const block = encodeHeaderBlock([[':status', status], ['content-type', 'text/plain; charset=utf-8'], ...fields]);
    this.#stream.connection.share.spend(COST.failure);
    this.#stream.sendHeaders(block, false);
    this.#timer = setTimeout(() => this.stop(), MAX_REQUEST_MS).unref();
  }

  get isUnfinished(): boolean {
    return false;
  }

  get waitsForClient(): boolean {
    return true;
  }

  get ownBytes(): number {
    return WAITING_REQUEST_BYTES;
  }

  onData(bytes: Buffer, isLast: boolean): void {
    this.#receivedBytes += bytes.length;
    if (isLast || this.#receivedBytes > MAX_REQUEST_BYTES) this.stop();
  }

  onReadEnd(): void {}

  onReset(): void {
    clearTimeout(this.#timer);
    this.#onEnd(this);
  }

  onShed(): void {
    this.#isShed = true;
    this.#stream.dropWaiting();
    if (this.#isStopped) this.#end();
    else this.stop();
  }

  onCut(): void {
    this.stop();
  }

  /** Ends the answer, even if the request is not complete. */
  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#onEnd(this);
    if (this.#body.length > 0 && this.#mayWait()) this.#stream.sendData(NOTHING, this.#body);
    this.#end();
  }

  #mayWait(): boolean {
    return !this.#isShed && this.#stream.connection.memory.waitingBytes < MAX_WAITING_BYTES;
  }

  #end(): void {
    this.#stream.sendTrailers(NOTHING);
    this.#stream.connection.flush();
  }
}

/** The refused requests that have not ended. Their number is bounded: beyond it the oldest is ended. */
export class RefusedRequests {
  readonly #unended = new LinkedQueue<RefusedRequest>();
  #count = 0;

  add(request: RefusedRequest): void {
    this.#unended.add(request);
    this.#count += 1;
    if (this.#count > MAX_UNENDED) this.#unended.first?.stop();
  }

  delete(request: RefusedRequest): void {
    if (this.#unended.delete(request)) this.#count -= 1;
  }

  stopAll(): void {
    for (const request of this.#unended.list()) request.stop();
  }
}
