/** A client waits here for the answer of the authorization endpoint. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Callback {
  readonly url: string;
  /** The URL that the next request came with. */
  nextUrl(): Promise<URL>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function listenForCallback(): Promise<Callback> {
  const arrived: URL[] = [];
  const waiting: ((url: URL) => void)[] = [];
  const server = createServer((request, response) => {
    response
      .setHeader('content-type', 'text/html')
      .end('<!doctype html><title>Client</title><h1>Back at the client</h1>');
    const url = new URL(request.url ?? '/', origin);
    if (url.pathname !== '/callback') return;
    const wake = waiting.shift();
    if (wake === undefined) arrived.push(url);
    else wake(url);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: `${origin}/callback`,
    nextUrl: async () => arrived.shift() ?? (await new Promise<URL>((resolve) => waiting.push(resolve))),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
