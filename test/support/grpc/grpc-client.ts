import { Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js';

/** A client of `@grpc/grpc-js` over raw bytes, with which a test can use any codec. */
export interface RawClient extends Disposable {
  unary(path: string, request: Uint8Array, options?: CallOptions): Promise<Buffer>;
  /** Sends the messages and half-closes. */
  clientStream(path: string, requests: readonly Uint8Array[], options?: CallOptions): Promise<Buffer>;
  /** The client of the library, for calls that the two above do not support. */
  readonly client: Client;
}

export interface CallOptions {
  readonly metadata?: Record<string, string>;
  readonly deadlineMs?: number;
}

export type TlsOptions = { readonly ca: Buffer; readonly key?: Buffer; readonly cert?: Buffer };

export function connectRaw(address: string, tls?: TlsOptions): RawClient {
  const channel =
    tls === undefined ? credentials.createInsecure() : credentials.createSsl(tls.ca, tls.key ?? null, tls.cert ?? null);
  const client = new Client(address, channel, {
    'grpc.use_local_subchannel_pool': 1,
    'grpc.max_receive_message_length': -1,
  });
  return {
    client,
    unary: (path, request, options) =>
      new Promise((resolve, reject) => {
        client.makeUnaryRequest(
          path,
          serialize,
          (bytes) => bytes,
          request,
          toMetadata(options),
          toCallOptions(options),
          settle(resolve, reject),
        );
      }),
    clientStream: (path, requests, options) =>
      new Promise((resolve, reject) => {
        const call = client.makeClientStreamRequest(
          path,
          serialize,
          (bytes) => bytes,
          toMetadata(options),
          toCallOptions(options),
          settle(resolve, reject),
        );
        for (const request of requests) call.write(request);
        call.end();
      }),
    [Symbol.dispose]: () => client.close(),
  };
}

export function serialize(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes);
}

function toMetadata(options: CallOptions | undefined): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(options?.metadata ?? {})) metadata.set(name, value);
  return metadata;
}

function toCallOptions(options: CallOptions | undefined): { deadline: number } {
  return { deadline: Date.now() + (options?.deadlineMs ?? 120_000) };
}

function settle(resolve: (bytes: Buffer) => void, reject: (error: Error) => void) {
  return (error: ServiceError | null, answer?: Buffer): void => {
    if (error !== null) reject(error);
    else if (answer === undefined) reject(new Error('no answer'));
    else resolve(answer);
  };
}
