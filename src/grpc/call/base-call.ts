/**
 * Implements what unary and streaming calls share: the deadline, cancellation, status and end of a gRPC call.
 * The protocol: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
 */
import { Failure } from '../../errors.ts';
import type { Log } from '../../telemetry/log.ts';
import { traceIdOf } from '../../telemetry/trace-id.ts';
import type { Tracing } from '../../telemetry/tracing.ts';
import type { World } from '../../world.ts';
import { costOfBytes } from '../budget/turns.ts';
import { countHeaderBytes, type HeaderName, type Headers } from '../http2/request-head.ts';
import type { Http2Stream } from '../http2/stream.ts';
import type { CutReason, StreamListener } from '../http2/stream-listener.ts';
import type { Decompressor, PendingDecompression } from '../protocol/decompressor.ts';
import { readTimeoutMs } from '../protocol/grpc-timeout.ts';
import type { FramedMessage } from '../protocol/message-reader.ts';
import { OK_TRAILERS, RESPONSE_HEADERS } from '../protocol/response-headers.ts';
import { isExpected, StatusError, statusCodeOf, toStatus } from '../protocol/status.ts';
import type { CountCall } from './call-metrics.ts';
import { recordCallSpan } from './call-span.ts';
import { MessageTimer } from './message-timer.ts';
import { isLocalPeer, type Peer } from './peer.ts';
import { RequestBuffer } from './request-buffer.ts';
import { sendFailure } from './send-failure.ts';
import type { GrpcCall, GrpcMethod } from './service.ts';

export interface Route {
  readonly path: string;
  readonly method: GrpcMethod;
  readonly count: CountCall;
}

export interface CallDependencies {
  readonly stream: Http2Stream;
  readonly headers: Headers;
  readonly route: Route;
  readonly peer: Peer;
  readonly maxMessageBytes: number;
  readonly decompressor: Decompressor;
  readonly log: Log;
  readonly world: Pick<World, 'randomBytes' | 'nowMs' | 'monotonicMs'>;
  readonly tracing: Tracing | undefined;
  /** Called when the call is over: nothing may wait for it afterwards. */
  readonly onEnd: (call: BaseCall) => void;
}

/** The bytes of a waiting call with its stream and the state of its collector, but without the values of its headers. */
export const WAITING_CALL_BYTES = 2048;

const OK = statusCodeOf('OK');
const CANCELLED = statusCodeOf('CANCELLED');

/** The common part of unary and streaming calls: the caller, the deadline, and how a call ends. */
export class BaseCall implements GrpcCall, StreamListener {
  protected readonly dependencies: CallDependencies;
  /** Created when needed: most requests arrive in one piece. */
  #request: RequestBuffer | undefined;
  #admission: Promise<void> | undefined;
  #timeoutMs: number | undefined;
  /** The prefix of a message, overwritten for each message: the stream copies it at once. */
  static readonly #head = Buffer.alloc(5);
  #controller: AbortController | undefined;
  #deadline: NodeJS.Timeout | undefined;
  /** Created when needed. */
  #messageTimer: MessageTimer | undefined;
  /** The message that is being decompressed. */
  #decompression: PendingDecompression | undefined;
  readonly #startedMs: number;
  #traceId: string | undefined;
  #isEnded = false;
  /** The answer is complete, but its end waits for a flow-control window. */
  #isAnswered = false;
  #isCancelled = false;
  #areHeadersSent = false;

  constructor(dependencies: CallDependencies) {
    this.dependencies = dependencies;
    this.#startedMs = dependencies.tracing === undefined ? 0 : dependencies.world.monotonicMs();
  }

  metadata(name: HeaderName): string | undefined {
    return this.dependencies.headers.get(name);
  }

  get peerAddress(): string | undefined {
    return this.dependencies.peer.address;
  }

  get isLoopback(): boolean {
    return isLocalPeer(this.dependencies.peer);
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#isCancelled) this.#controller.abort();
    return this.#controller.signal;
  }

  /** Checks the request headers. A call that fails here is over before any byte of its request is kept. */
  open(): void {
    try {
      this.#timeoutMs = readTimeoutMs(this.dependencies.headers.get('grpc-timeout'));
      const admission = this.dependencies.route.method.check?.(this);
      this.#admission = admission?.then(() => {
        this.#admission = undefined;
      });
      this.#admission?.catch((error: unknown) => this.fail(error));
    } catch (error) {
      this.fail(error);
    }
  }

  get isUnfinished(): boolean {
    return false;
  }

  get waitsForClient(): boolean {
    return this.isUnfinished && this.#request?.waitsForRoom !== true;
  }

  get ownBytes(): number {
    return this.waitingBytes + countHeaderBytes(this.dependencies.headers);
  }

  protected get waitingBytes(): number {
    return WAITING_CALL_BYTES;
  }

  onData(_bytes: Buffer, _isLast: boolean): void {}

  onReadEnd(): void {
    this.startDeadline();
  }

  onReset(): void {
    if (this.#isEnded) return;
    this.#end(CANCELLED);
    this.abort();
  }

  onShed(): void {
    const message = 'Cannot answer: the calls under way keep too much memory, try again later';
    // The pushback time shows callers that the message itself is not too large, an error with the same status.
    this.fail(new Failure('too_many', message, { retryAfterSeconds: 1 }));
    this.abort();
  }

  onCut(reason: CutReason): void {
    this.fail(new Failure('unavailable', `Cannot answer: ${reason}`));
    this.abort();
  }

  /** Tells the method to end, as if the caller had left. */
  abort(): void {
    this.#isCancelled = true;
    this.#controller?.abort();
  }

  protected get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Pending while the caller's token is checked, then undefined. Rejects if the caller is refused, and then the call has failed. */
  protected get admission(): Promise<void> | undefined {
    return this.#admission;
  }

  /** Whether the caller is authorized and the call queue has room. */
  protected get mayStart(): boolean {
    return this.#admission === undefined && this.dependencies.stream.connection.memory.callQueue.hasRoom;
  }

  /** The kept bytes of the request; undefined before the first. */
  protected get request(): RequestBuffer | undefined {
    return this.#request;
  }

  protected keep(bytes: Buffer): void {
    const { stream, maxMessageBytes } = this.dependencies;
    this.#request ??= new RequestBuffer({ stream, maxMessageBytes, onExpired: () => this.onShed() });
    this.#request.keep(bytes);
  }

  /** The method has used the message. */
  protected recycleMessage(): void {
    if (this.dependencies.route.method.keepsNoBytes) this.#request?.recycle();
  }

  /** Lets the caller send the rest of the message under way. */
  protected reserveRoom(): void {
    if (this.#request === undefined || !this.#request.hasBegun) return;
    this.expectMessage();
    this.#request.reserveRoom();
  }

  /** Counts from the end of the read that brought the headers: a synchronous Predict is answered whatever `grpc-timeout` is. */
  protected startDeadline(): void {
    if (this.#timeoutMs === undefined || this.#deadline !== undefined || this.#isEnded) return;
    this.#deadline = setTimeout(() => {
      this.fail(new Failure('deadline', 'Deadline exceeded'));
      this.abort();
    }, this.#timeoutMs);
  }

  /** Ends the call unless the message is complete in time. */
  protected expectMessage(): void {
    if (this.#isEnded) return;
    this.#messageTimer ??= new MessageTimer((failure) => {
      this.fail(failure);
      this.abort();
    });
    this.#messageTimer.begin();
  }

  protected stopMessageTimer(): void {
    this.#messageTimer?.stop();
  }

  protected async decompress(message: FramedMessage): Promise<Buffer> {
    if (!message.isCompressed) return message.bytes;
    if (this.#isEnded) throw new StatusError('CANCELLED', 'The call has ended');
    const { headers, maxMessageBytes: maxBytes, decompressor, stream } = this.dependencies;
    const encoding = headers.get('grpc-encoding') ?? 'identity';
    this.#decompression = decompressor.decompress(stream.connection, { bytes: message.bytes, encoding, maxBytes });
    try {
      return await this.#decompression.result;
    } finally {
      // The abandoned promise would keep the result as long as the call lasts, and no budget counts it.
      this.#decompression = undefined;
    }
  }

  protected sendMessage(answer: Uint8Array): void {
    const { stream } = this.dependencies;
    if (!this.#areHeadersSent) stream.sendHeaders(RESPONSE_HEADERS, false);
    this.#areHeadersSent = true;
    const head = BaseCall.#head;
    head.writeUInt32BE(answer.length, 1);
    stream.connection.share.spend(costOfBytes(answer.length));
    stream.sendData(head, answer);
  }

  protected succeed(): void {
    if (this.#isEnded || this.#isAnswered) return;
    const { stream } = this.dependencies;
    if (stream.isWaiting) {
      this.#isAnswered = true;
      this.startDeadline();
      void stream.whenSent().then(() => this.#end(OK));
    } else this.#end(OK);
    if (!this.#areHeadersSent) stream.sendHeaders(RESPONSE_HEADERS, false);
    stream.sendTrailers(OK_TRAILERS);
    stream.connection.flush();
  }

  fail(error: unknown): void {
    if (this.#isEnded) return;
    const { route, stream, log, world, headers } = this.dependencies;
    this.#traceId ??= traceIdOf(headers.get('traceparent'), world);
    const traceId = this.#traceId;
    const status = toStatus(error, traceId);
    if (!isExpected(error)) log.error({ err: error, traceId, path: route.path }, 'A call failed unexpectedly');
    this.#end(status.code);
    stream.dropWaiting();
    sendFailure(stream, status, this.#areHeadersSent);
    stream.connection.flush();
  }

  /** The call is over: releases all that is kept for it. */
  protected onEnd(): void {}

  #end(code: number): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    clearTimeout(this.#deadline);
    this.stopMessageTimer();
    this.#decompression?.cancel();
    this.onEnd();
    const { route, headers, world, tracing, onEnd } = this.dependencies;
    route.count(code);
    if (tracing !== undefined)
      recordCallSpan(tracing, {
        path: route.path,
        traceparent: headers.get('traceparent'),
        traceId: this.#traceId,
        startedMs: this.#startedMs,
        code,
        world,
      });
    onEnd(this);
  }
}
