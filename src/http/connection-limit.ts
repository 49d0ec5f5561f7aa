/** Limits the HTTP connections of the server, and divides them among networks. */
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ConnectionPlaces, type PlacedConnection } from '../connections/connection-places.ts';
import type { NetworkUse } from '../connections/network-use.ts';
import type { ReadNetwork } from './client-address.ts';

export interface ConnectionLimit {
  readonly maxConnections: number;
  readonly readNetwork: ReadNetwork;
}

/**
 * Caps the connections of a server, and divides them among networks. A new connection takes the place of one that has no request
 * or waits for its client: for the rest of a request, or for the client to read an answer. Otherwise a client that begins
 * requests and does not end them would keep all others out.
 */
export function limitConnections(server: Server, { maxConnections, readNetwork }: ConnectionLimit): void {
  const places = new ConnectionPlaces<HttpConnection>(maxConnections);
  const connections = new Map<Socket, HttpConnection>();
  let moment = 0;
  const nextMoment = (): number => {
    moment += 1;
    return moment;
  };
  server.on('connection', (socket) => {
    const name = readNetwork(socket.remoteAddress);
    const network = places.enter(name);
    if (network === undefined) {
      socket.destroy();
      return;
    }
    const connection = watchConnection(socket, network, nextMoment);
    places.add(connection, name);
    connections.set(socket, connection);
    socket.once('close', () => {
      connections.delete(socket);
      places.delete(connection);
    });
  });
  server.on('request', ({ socket }, outgoing) => connections.get(socket)?.begin(outgoing));
}

interface HttpConnection extends PlacedConnection {
  begin(outgoing: ServerResponse): void;
}

/** `nextMoment` orders the connections of a server by the end of their last request. */
function watchConnection(socket: Socket, network: NetworkUse, nextMoment: () => number): HttpConnection {
  const unanswered = new Set<ServerResponse>();
  let endedAt = nextMoment();
  return {
    network,
    get idleSince() {
      return unanswered.size === 0 ? endedAt : undefined;
    },
    /** True when none of its requests is being worked on. */
    get waitsForClient() {
      return [...unanswered].every(({ req, writableEnded }) => !req.complete || writableEnded);
    },
    begin(outgoing) {
      unanswered.add(outgoing);
      outgoing.once('close', () => {
        unanswered.delete(outgoing);
        endedAt = nextMoment();
      });
    },
    evict: () => socket.destroy(),
  };
}
