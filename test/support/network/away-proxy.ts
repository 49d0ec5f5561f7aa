/** A reverse proxy whose service can go away: it then answers 503, and the answers under way break. */
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream';

export interface AwayProxy extends AsyncDisposable {
  readonly url: string;
  goAway(): void;
  comeBack(): void;
}

export async function startProxy(target: string): Promise<AwayProxy> {
  let isAway = false;
  const server = createServer((incoming, outgoing) => {
    if (isAway) return void outgoing.writeHead(503).end();
    const { method, headers, url } = incoming;
    const passed = request(new URL(url ?? '/', target), { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      pipeline(answer, outgoing, () => {});
    });
    pipeline(incoming, passed, () => {});
    outgoing.on('close', () => passed.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    goAway() {
      isAway = true;
      server.closeAllConnections();
    },
    comeBack() {
      isAway = false;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
