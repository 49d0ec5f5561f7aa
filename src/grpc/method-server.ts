import type { Metadata, Server } from '@grpc/grpc-js';
import type { Log } from '../telemetry/log.ts';
import { traceIdOf } from '../telemetry/trace-id.ts';
import type { World } from '../world.ts';
import type { CountCall } from './call-metrics.ts';
import { createRequestStream } from './request-stream.ts';
import { ServerCall, type TransportCall } from './server-call.ts';
import type { GrpcClientStreamMethod, GrpcMethod, GrpcService, GrpcStreamMethod, GrpcUnaryMethod } from './service.ts';
import { isExpected, statusCodeOf, toStatus } from './status.ts';

export interface MethodServerParts {
  readonly log: Log;
  readonly world: Pick<World, 'randomBytes'>;
  readonly countCalls: (service: string, method: string) => CountCall;
  readonly createMetadata: () => Metadata;
}

/** The calls of the library, as far as they matter here. */
interface UnaryCall extends TransportCall {
  readonly request: Uint8Array;
}

interface StreamingCall extends TransportCall, AsyncIterable<Uint8Array> {}

interface DuplexCall extends StreamingCall {
  write(message: Uint8Array, done: (error?: Error | null) => void): boolean;
  end(): void;
  emit(event: 'error', error: object): boolean;
}

type Respond = (error: object | null, answer?: Uint8Array) => void;

/** What stands around the calls of one method: who counts them, where they came in, under which name they are logged. */
interface Route {
  readonly path: string;
  readonly isUnixSocket: boolean;
  readonly count: CountCall;
}

const OK = statusCodeOf('OK');
const CANCELLED = statusCodeOf('CANCELLED');

/** Turns methods over raw bytes into handlers of the library. */
export class MethodServer {
  readonly #parts: MethodServerParts;
  readonly #stops = new Set<() => void>();

  constructor(parts: MethodServerParts) {
    this.#parts = parts;
  }

  register(server: Server, service: GrpcService, isUnixSocket: boolean): void {
    for (const method of service.methods) {
      const count = this.#parts.countCalls(service.name, method.name);
      const route = { path: `/${service.name}/${method.name}`, isUnixSocket, count };
      const { handler, type } = this.#toHandler(method, route);
      server.register(route.path, handler as never, asBuffer as never, (bytes: Buffer) => bytes as never, type);
    }
  }

  /** Ends the streams under way: their methods see no more messages and an aborted signal. */
  stopStreams(): void {
    for (const stop of this.#stops) stop();
  }

  #toHandler(method: GrpcMethod, route: Route): { handler: unknown; type: string } {
    switch (method.kind) {
      case 'unary':
        return { type: 'unary', handler: this.#serveUnary(method, route) };
      case 'client-stream':
        return { type: 'clientStream', handler: this.#serveClientStream(method, route) };
      case 'stream':
        return { type: 'bidi', handler: this.#serveStream(method, route) };
    }
  }

  #serveUnary(method: GrpcUnaryMethod, route: Route) {
    return (call: UnaryCall, respond: Respond): void => {
      try {
        const answer = method.handle(call.request, new ServerCall(call, route.isUnixSocket));
        if (answer instanceof Uint8Array) this.#succeed(call, route, () => respond(null, answer));
        else this.#settle(answer, { call, route, respond });
      } catch (error) {
        respond(this.#fail(error, call, route));
      }
    };
  }

  #serveClientStream(method: GrpcClientStreamMethod, route: Route) {
    return (call: StreamingCall, respond: Respond): void => {
      const requests = createRequestStream(call);
      this.#stops.add(requests.stop);
      const serverCall = new ServerCall(call, route.isUnixSocket);
      const answer = Promise.try(() => method.handle(requests, serverCall)).finally(() =>
        this.#stops.delete(requests.stop),
      );
      this.#settle(answer, { call, route, respond });
    };
  }

  #serveStream(method: GrpcStreamMethod, route: Route) {
    return (call: DuplexCall): void => {
      const requests = createRequestStream(call);
      const serverCall = new ServerCall(call, route.isUnixSocket);
      const stop = (): void => {
        requests.stop();
        serverCall.abort();
      };
      this.#stops.add(stop);
      this.#writeAll(call, method.handle(requests, serverCall))
        .then(
          () => this.#succeed(call, route, () => call.end()),
          (error: unknown) => call.emit('error', this.#fail(error, call, route)),
        )
        .finally(() => this.#stops.delete(stop));
    };
  }

  /** One message after another, each when the one before is on its way: a slow caller slows the method down. */
  async #writeAll(call: DuplexCall, answers: AsyncIterable<Uint8Array>): Promise<void> {
    for await (const answer of answers) {
      if (call.cancelled) return;
      await new Promise<void>((resolve) => {
        call.write(answer, () => resolve());
        call.once('cancelled', resolve);
      });
    }
  }

  #settle(
    answer: Promise<Uint8Array>,
    { call, route, respond }: { call: TransportCall; route: Route; respond: Respond },
  ): void {
    answer.then(
      (bytes) => this.#succeed(call, route, () => respond(null, bytes)),
      (error: unknown) => respond(this.#fail(error, call, route)),
    );
  }

  #succeed(call: TransportCall, route: Route, finish: () => void): void {
    route.count(call.cancelled ? CANCELLED : OK);
    finish();
  }

  /** What the library wants of a failed call. A failure after the caller left is the consequence, not news. */
  #fail(error: unknown, call: TransportCall, route: Route): object {
    const { log, world, createMetadata } = this.#parts;
    const traceId = traceIdOf(call.metadata.get('traceparent')[0]?.toString(), world);
    const status = toStatus(error, traceId);
    route.count(call.cancelled ? CANCELLED : status.code);
    if (!isExpected(error) && !call.cancelled) log.error({ err: error, traceId, path: route.path }, 'call failed');
    const metadata = createMetadata();
    if (status.retryAfterMs !== undefined) metadata.set('grpc-retry-pushback-ms', String(status.retryAfterMs));
    return { code: status.code, details: status.details, metadata };
  }
}

/** The library copies the bytes at once, which is what lets methods reuse their buffer. */
function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
