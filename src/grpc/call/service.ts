/** Declares what a gRPC service is: its methods of four kinds, and what a method knows of its call. */
import type { HeaderName } from '../http2/request-head.ts';

/** The facts of a call that its method may use. */
export interface GrpcCall {
  /** The value of a metadata entry, or undefined. Entries that nothing reads are not kept. */
  metadata(name: HeaderName): string | undefined;
  /** Aborted when the caller cancels or its deadline passes. */
  readonly signal: AbortSignal;
  /** Undefined on a unix socket, and when the caller is gone already. */
  readonly peerAddress: string | undefined;
  /** True when the caller is on this machine: loopback or a unix socket. */
  readonly isLoopback: boolean;
}

interface Checked {
  /**
   * Whether the caller may call, before anything of the request is kept or expanded. Throws or rejects if not; undefined
   * when that is known at once.
   */
  check?(call: GrpcCall): Promise<void> | undefined;
  /**
   * Set if the method keeps none of a request's bytes once it has answered, or has taken the next message: their memory is then
   * used for other requests. Otherwise the bytes are never overwritten.
   */
  readonly keepsNoBytes?: true;
  /** For a method whose messages are short; otherwise the limit of the server. */
  readonly maxMessageBytes?: number;
}

/**
 * One unary method over the raw message bytes. Decoding and encoding belong to the method, so that a hot one can use a
 * codec of its own. `handle` may be synchronous: then the answer goes out in the same turn. Refusals are thrown as
 * `Failure` and become a gRPC status.
 *
 * A synchronous answer may lie in a buffer that the next call overwrites: it is copied in the same turn.
 */
export interface GrpcUnaryMethod extends Checked {
  readonly kind: 'unary';
  readonly name: string;
  handle(request: Uint8Array, call: GrpcCall): Uint8Array | Promise<Uint8Array>;
}

/**
 * What a client-streaming method makes of the messages of one call. Its functions are called in turn, and make no promise for a message:
 * a client may open hundreds of calls that wait, and each garbage collection copies what they have made since the last one.
 */
export interface MessageCollector {
  /** Whether the next message may be taken, for which there is room then. If not, `onRoom` is called once it may. */
  reserve(): boolean;
  /** Takes a message for which there is room. What it throws, the call fails with. */
  take(message: Uint8Array): void;
  /** No more messages come. Resolves with the answer. */
  finish(): Promise<Uint8Array>;
  /** Nothing is asked of the collector any more. Called once, however the call ends. */
  close(): void;
}

/**
 * A client-streaming method: messages in, one answer out. A collector without room is the backpressure. When the server drains, the
 * messages end early, so that those that were taken are answered.
 */
export interface GrpcClientStreamMethod extends Checked {
  readonly kind: 'client-stream';
  readonly name: string;
  open(call: GrpcCall, onRoom: () => void): MessageCollector;
}

/**
 * Messages in, messages out; the next is asked for once the caller can take it. When the server drains, `requests` ends
 * and the signal is aborted.
 */
export interface GrpcStreamMethod extends Checked {
  readonly kind: 'stream';
  readonly name: string;
  handle(requests: AsyncIterable<Uint8Array>, call: GrpcCall): AsyncIterable<Uint8Array>;
}

/**
 * One message in, and messages out whenever the method has one, until the caller leaves or the server drains. For calls that wait
 * nearly all the time: one that waits keeps a fifth of the memory of a `stream`.
 */
export interface GrpcWatchMethod extends Checked {
  readonly kind: 'watch';
  readonly name: string;
  /** Returns what ends it, which is called once. `send` copies its message, and does nothing once the call is over. */
  watch(request: Uint8Array, send: (message: Uint8Array) => void): () => void;
}

export type GrpcMethod = GrpcUnaryMethod | GrpcClientStreamMethod | GrpcStreamMethod | GrpcWatchMethod;

/** A service by its full name, for example `prediction.v1.PredictionService`. */
export interface GrpcService {
  readonly name: string;
  readonly methods: readonly GrpcMethod[];
}
