import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Caps the connections of a server. A new one takes the place of the oldest that has no request under way: a client that opens
 * connections and sends nothing does not keep others out.
 */
export function limitConnections(server: Server, maxConnections: number): void {
  /** Requests under way, by connection, the oldest first. */
  const requests = new Map<Socket, number>();
  const change = (socket: Socket, by: number): void => {
    const count = requests.get(socket);
    if (count !== undefined) requests.set(socket, count + by);
  };
  server.on('connection', (socket) => {
    if (requests.size >= maxConnections) findIdle(requests)?.destroy();
    if (requests.size >= maxConnections) {
      socket.destroy();
      return;
    }
    requests.set(socket, 0);
    socket.once('close', () => requests.delete(socket));
  });
  server.on('request', ({ socket }, outgoing) => {
    change(socket, 1);
    outgoing.once('close', () => change(socket, -1));
  });
}

function findIdle(requests: Map<Socket, number>): Socket | undefined {
  for (const [socket, count] of requests)
    if (count === 0) {
      requests.delete(socket);
      return socket;
    }
  return undefined;
}
