import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A receiver of webhooks on a loopback port that records its requests. */
export interface Receiver extends AsyncDisposable {
  readonly url: string;
  readonly received: readonly ReceivedRequest[];
  /** Resolves when this many requests have arrived. */
  waitFor(count: number): Promise<void>;
}

/** Several receivers that answer 200. */
export interface Receivers extends AsyncDisposable {
  readonly urls: readonly string[];
}

export async function startReceivers(
  count: number,
  onRequest: (receiver: number, request: ReceivedRequest) => void,
): Promise<Receivers> {
  await using undo = new AsyncDisposableStack();
  const urls: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const started = await startReceiver((request, response) => {
      onRequest(index, request);
      response.end('ok');
    });
    urls.push(undo.use(started).url);
  }
  const started = undo.move();
  return { urls, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
  readonly remotePort: number;
}

export type Answer = (request: ReceivedRequest, response: ServerResponse, index: number) => void;

export async function startReceiver(
  answer: Answer = (_, response) => void response.end('ok'),
  listenPort = 0,
): Promise<Receiver> {
  const received: ReceivedRequest[] = [];
  const waiters = new Set<() => void>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url: path = '', headers } = request;
      const remotePort = request.socket.remotePort ?? 0;
      const one = { method, path, headers, body: Buffer.concat(chunks), remotePort };
      received.push(one);
      answer(one, response, received.length - 1);
      for (const check of waiters) check();
    });
  });
  await new Promise<void>((resolve) => server.listen(listenPort, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hook`,
    received,
    waitFor: (count) =>
      new Promise((resolve) => {
        const check = () => {
          if (received.length < count) return;
          waiters.delete(check);
          resolve();
        };
        waiters.add(check);
        check();
      }),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
