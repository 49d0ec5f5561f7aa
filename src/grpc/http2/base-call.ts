/** gRPC on one HTTP/2 stream: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */
import { Failure } from '../../errors.ts';
import type { Log } from '../../telemetry/log.ts';
import { traceIdOf } from '../../telemetry/trace-id.ts';
import type { Tracing } from '../../telemetry/tracing.ts';
import type { World } from '../../world.ts';
import type { CountCall } from '../call-metrics.ts';
import { isLoopbackAddress } from '../loopback.ts';
import type { GrpcCall, GrpcMethod } from '../service.ts';
import { isExpected, isOurFault, StatusError, statusCodeOf, toStatus } from '../status.ts';
import { encodeGrpcMessage, encodeHeaderBlock } from './header-block.ts';
import { ACCEPTED_ENCODINGS, decompress, type FramedMessage, MessageSplitter } from './message-reader.ts';
import type { Headers } from './request-head.ts';
import type { Http2Stream, StreamListener } from './stream.ts';

export interface Route {
  readonly path: string;
  readonly method: GrpcMethod;
  readonly count: CountCall;
}

export interface Peer {
  readonly isUnixSocket: boolean;
  readonly address: string | undefined;
}

export interface CallParts {
  readonly stream: Http2Stream;
  readonly headers: Headers;
  readonly route: Route;
  readonly peer: Peer;
  readonly maxMessageBytes: number;
  readonly log: Log;
  readonly world: Pick<World, 'randomBytes' | 'nowMs' | 'monotonicMs'>;
  readonly tracing: Tracing | undefined;
  /** The call is over: nothing must wait for it any more. */
  readonly onEnd: (call: BaseCall) => void;
}

const OK = statusCodeOf('OK');
const CANCELLED = statusCodeOf('CANCELLED');

export const CONTENT_TYPE = ['content-type', 'application/grpc'] as const;
const ACCEPT_ENCODING = ['grpc-accept-encoding', ACCEPTED_ENCODINGS] as const;
const RESPONSE_HEADERS = encodeHeaderBlock([[':status', '200'], CONTENT_TYPE, ACCEPT_ENCODING]);
const OK_TRAILERS = encodeHeaderBlock([['grpc-status', '0']]);

/** What the two kinds of call have in common: who calls, how it ends. */
export class BaseCall implements GrpcCall, StreamListener {
  protected readonly parts: CallParts;
  /** Made when it is needed: most calls come in one piece. */
  #splitter: MessageSplitter | undefined;
  /** The head of a message, written anew for each: the stream copies it at once. */
  static readonly #head = Buffer.alloc(5);
  #controller: AbortController | undefined;
  #deadline: NodeJS.Timeout | undefined;
  readonly #startedMs: number;
  #traceId: string | undefined;
  #isEnded = false;
  #isCancelled = false;
  #areHeadersSent = false;

  constructor(parts: CallParts) {
    this.parts = parts;
    this.#startedMs = parts.tracing === undefined ? 0 : parts.world.monotonicMs();
  }

  metadata(name: string): string | undefined {
    return this.parts.headers.get(name);
  }

  get peerAddress(): string | undefined {
    return this.parts.peer.address;
  }

  get isLoopback(): boolean {
    return this.parts.peer.isUnixSocket || isLoopbackAddress(this.parts.peer.address);
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#isCancelled) this.#controller.abort();
    return this.#controller.signal;
  }

  onData(_bytes: Buffer, _isLast: boolean): void {}

  onReset(): void {
    if (this.#isEnded) return;
    this.#end(CANCELLED);
    this.abort();
  }

  onCut(): void {
    this.fail(new Failure('unavailable', 'Cannot answer: the server stops'));
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

  protected split(bytes: Buffer): readonly FramedMessage[] {
    this.#splitter ??= new MessageSplitter(this.parts.maxMessageBytes);
    return this.#splitter.push(bytes);
  }

  protected checkNothingLeft(): void {
    if (this.#splitter?.isEmpty === false) throw new StatusError('INTERNAL', 'Cannot read the message: it is cut off');
  }

  /** From here on the call takes time. A call that is answered in its turn needs no timer. */
  protected startDeadline(): void {
    const timeoutMs = readTimeoutMs(this.parts.headers.get('grpc-timeout'));
    if (timeoutMs === undefined || this.#deadline !== undefined || this.#isEnded) return;
    this.#deadline = setTimeout(() => {
      this.fail(new Failure('deadline', 'Deadline exceeded'));
      this.abort();
    }, timeoutMs);
  }

  protected async expand(message: FramedMessage): Promise<Buffer> {
    if (!message.isCompressed) return message.bytes;
    const encoding = this.parts.headers.get('grpc-encoding') ?? 'identity';
    return decompress(message, encoding, this.parts.maxMessageBytes);
  }

  protected sendMessage(answer: Uint8Array): void {
    const { stream } = this.parts;
    if (!this.#areHeadersSent) stream.sendHeaders(RESPONSE_HEADERS, false);
    this.#areHeadersSent = true;
    const head = BaseCall.#head;
    head.writeUInt32BE(answer.length, 1);
    stream.sendData(head, answer);
  }

  protected succeed(): void {
    if (this.#isEnded) return;
    const { stream } = this.parts;
    this.#end(OK);
    if (!this.#areHeadersSent) stream.sendHeaders(RESPONSE_HEADERS, false);
    stream.sendTrailers(OK_TRAILERS);
    stream.connection.flush();
  }

  fail(error: unknown): void {
    if (this.#isEnded) return;
    const { route, stream, log, world, headers } = this.parts;
    this.#traceId ??= traceIdOf(headers.get('traceparent'), world);
    const traceId = this.#traceId;
    const status = toStatus(error, traceId);
    if (!isExpected(error)) log.error({ err: error, traceId, path: route.path }, 'call failed');
    this.#end(status.code);
    const trailers: [string, string][] = [['grpc-status', String(status.code)]];
    if (status.details !== '') trailers.push(['grpc-message', encodeGrpcMessage(status.details)]);
    if (status.retryAfterMs !== undefined) trailers.push(['grpc-retry-pushback-ms', String(status.retryAfterMs)]);
    if (this.#areHeadersSent) stream.sendTrailers(encodeHeaderBlock(trailers));
    else stream.sendHeaders(encodeHeaderBlock([[':status', '200'], CONTENT_TYPE, ACCEPT_ENCODING, ...trailers]), true);
    stream.connection.flush();
  }

  #end(code: number): void {
    this.#isEnded = true;
    clearTimeout(this.#deadline);
    this.parts.route.count(code);
    if (this.parts.tracing !== undefined) this.#record(this.parts.tracing, code);
    this.parts.onEnd(this);
  }

  #record(tracing: Tracing, code: number): void {
    const { route, headers, world } = this.parts;
    const traceparent = headers.get('traceparent');
    tracing.record({
      name: route.path.slice(1),
      traceId: this.#traceId ?? traceIdOf(traceparent, world),
      traceparent,
      endedAtMs: world.nowMs(),
      durationMs: world.monotonicMs() - this.#startedMs,
      attributes: { 'rpc.system': 'grpc', 'rpc.grpc.status_code': code },
      hasFailed: isOurFault(code),
    });
  }
}

const TIMEOUT_UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };
const MAX_TIMER_MS = 0x7fff_ffff;

function readTimeoutMs(header: string | undefined): number | undefined {
  const match = /^(\d{1,8})([HMSmun])$/.exec(header ?? '');
  if (match === null) return undefined;
  return Math.min(Number(match[1]) * TIMEOUT_UNIT_MS[match[2]!]!, MAX_TIMER_MS);
}
