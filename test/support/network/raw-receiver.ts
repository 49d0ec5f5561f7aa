import type { AddressInfo } from 'node:net';
import { createServer, type Server, type Socket } from 'node:net';

/** A receiver below HTTP: the test decides what it does with a connection. */
export interface RawReceiver extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly connections: number;
}

export async function startRawReceiver(
  onConnection: (socket: Socket, index: number) => void,
  host = '127.0.0.1',
): Promise<RawReceiver> {
  const sockets = new Set<Socket>();
  let connections = 0;
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    onConnection(socket, connections);
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hook`,
    port,
    get connections() {
      return connections;
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Calls back at the end of each request on the connection; a body of known length is assumed. */
export function onRequest(socket: Socket, answer: (index: number) => void): void {
  let text = '';
  let index = 0;
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
    for (;;) {
      const head = text.indexOf('\r\n\r\n');
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
      if (head < 0 || text.length < head + 4 + length) return;
      text = text.slice(head + 4 + length);
      answer(index);
      index += 1;
    }
  });
}
