import { isIPv4 } from 'node:net';
import type { Metadata } from '@grpc/grpc-js';
import type { GrpcCall } from './service.ts';

/** What every kind of call of the transport has in common. */
export interface TransportCall {
  readonly metadata: Metadata;
  readonly cancelled: boolean;
  getPeer(): string;
  once(event: 'cancelled', listener: () => void): unknown;
}

/** A call as handlers see it. Everything is found out only when asked for: most handlers ask for nothing. */
export class ServerCall implements GrpcCall {
  readonly #call: TransportCall;
  readonly #isUnixSocket: boolean;
  #controller: AbortController | undefined;

  constructor(call: TransportCall, isUnixSocket: boolean) {
    this.#call = call;
    this.#isUnixSocket = isUnixSocket;
  }

  metadata(name: string): string | undefined {
    return this.#call.metadata.get(name)[0]?.toString();
  }

  get signal(): AbortSignal {
    this.#controller ??= this.#listen();
    return this.#controller.signal;
  }

  get peerAddress(): string | undefined {
    if (this.#isUnixSocket) return undefined;
    const peer = this.#call.getPeer();
    const portStart = peer.lastIndexOf(':');
    return portStart < 0 ? undefined : peer.slice(0, portStart);
  }

  get isLoopback(): boolean {
    return this.#isUnixSocket || isLoopbackAddress(this.peerAddress);
  }

  /** Tells the method to end, as if the caller had left. */
  abort(): void {
    this.#controller ??= this.#listen();
    this.#controller.abort();
  }

  #listen(): AbortController {
    const controller = new AbortController();
    if (this.#call.cancelled) controller.abort();
    else this.#call.once('cancelled', () => controller.abort());
    return controller;
  }
}

/** 127.0.0.0/8 and ::1, also as an IPv4 address in an IPv6 one. */
export function isLoopbackAddress(address: string | undefined): boolean {
  if (address === undefined) return false;
  const plain = address.startsWith('::ffff:') ? address.slice(7) : address;
  return plain === '::1' || (isIPv4(plain) && plain.startsWith('127.'));
}
