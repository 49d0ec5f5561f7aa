/** Declares the shape of a gRPC service: its methods of four kinds, and the facts of a call that a method sees. */
import type { HeaderName } from '../http2/request-head.ts';

/** The facts of a call that its method may use. */
export interface GrpcCall {
  /** The value of a metadata entry, or undefined. Only entries that some code reads are kept. */
  metadata(name: HeaderName): string | undefined;
  /** Aborted when the caller cancels or its deadline passes. */
  readonly signal: AbortSignal;
  /** The peer address; undefined on a unix socket, and when the caller is gone already. */
  readonly peerAddress: string | undefined;
  /** True when the caller is on this machine: loopback or a unix socket. */
  readonly isLoopback: boolean;
}

interface Checked {
  /**
   * Checks the caller before any byte of the request is kept or decompressed. Throws or rejects if the caller is refused;
   * returns undefined when the check needs no wait.
   */
  check?(call: GrpcCall): Promise<void> | undefined;
  /**
   * Set if the method keeps none of a request's bytes once it has answered or taken the next message: their memory is then
   * reused for other requests. Otherwise the bytes are never overwritten.
   */
  readonly keepsNoBytes?: true;
  /** The limit of a method whose messages are short, in bytes; otherwise the limit of the server applies. */
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
 * Collects the messages of one client-streaming call. Its functions are called one after the other, and create no promise for a message:
 * a client may open hundreds of waiting calls, and each garbage collection copies the objects that they created since the last one.
 */
export interface MessageCollector {
  /** Reserves room for the next message and returns true; if there is no room, `onRoom` is called once there is. */
  reserve(): boolean;
  /** Takes a message for which there is room. The call fails with the error that it throws. */
  take(message: Uint8Array): void;
  /** Called after the last message. Resolves with the answer. */
  finish(): Promise<Uint8Array>;
  /** Called once at the end, however the call ends: no other function is called afterwards. */
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
 * Messages in, messages out; the next answer is requested once the caller can take it. When the server drains, `requests`
 * ends and the signal is aborted.
 */
export interface GrpcStreamMethod extends Checked {
  readonly kind: 'stream';
  readonly name: string;
  handle(requests: AsyncIterable<Uint8Array>, call: GrpcCall): AsyncIterable<Uint8Array>;
}

/**
 * One message in, and messages out whenever the method has one, until the caller leaves or the server drains. Use it for calls
 * that wait nearly all the time: a waiting one keeps a fifth of the memory of a `stream`.
 */
export interface GrpcWatchMethod extends Checked {
  readonly kind: 'watch';
  readonly name: string;
  /** Returns the function that ends the watch, which is called once. `send` copies its message, and does nothing once the call is over. */
  watch(request: Uint8Array, send: (message: Uint8Array) => void): () => void;
}

export type GrpcMethod = GrpcUnaryMethod | GrpcClientStreamMethod | GrpcStreamMethod | GrpcWatchMethod;

/** A service by its full name, for example `prediction.v1.PredictionService`. */
export interface GrpcService {
  readonly name: string;
  readonly methods: readonly GrpcMethod[];
}
