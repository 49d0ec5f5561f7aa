import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Caps the connections of a server. A new one takes the place of the oldest without a request or, if every connection has
 * one, of the oldest that waits for its client: for the rest of a request, or for the client to read an answer. Otherwise
 * a client that begins requests and does not end them would keep all others out.
 */
export function limitConnections(server: Server, maxConnections: number): void {
  /** The requests of each connection that are not answered, the oldest connection first. */
  const requests = new Map<Socket, Set<ServerResponse>>();
  server.on('connection', (socket) => {
    if (requests.size >= maxConnections) closeOne(requests);
    if (requests.size >= maxConnections) {
      socket.destroy();
      return;
    }
    requests.set(socket, new Set());
    socket.once('close', () => requests.delete(socket));
  });
  server.on('request', ({ socket }, outgoing) => {
    requests.get(socket)?.add(outgoing);
    outgoing.once('close', () => requests.get(socket)?.delete(outgoing));
  });
}

function closeOne(requests: Map<Socket, Set<ServerResponse>>): void {
  const socket = findSocket(requests, (unanswered) => unanswered.size === 0) ?? findSocket(requests, waitsForClient);
  if (socket === undefined) return;
  requests.delete(socket);
  socket.destroy();
}

function findSocket(
  requests: Map<Socket, Set<ServerResponse>>,
  matches: (unanswered: Set<ServerResponse>) => boolean,
): Socket | undefined {
  for (const [socket, unanswered] of requests) if (matches(unanswered)) return socket;
  return undefined;
}

/** True when none of its requests is being worked on. */
function waitsForClient(unanswered: Set<ServerResponse>): boolean {
  return [...unanswered].every(({ req, writableEnded }) => !req.complete || writableEnded);
}
