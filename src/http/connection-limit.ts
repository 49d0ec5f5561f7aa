/** Limits the HTTP connections of the server, and divides them among networks. */
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ConnectionPlaces, type PlacedConnection } from '../connections/connection-places.ts';
import type { NetworkUse } from '../connections/network-use.ts';
import { countTaken, followProgress, PROGRESS_BYTES } from '../connections/socket-progress.ts';
import { type Linked, LinkedQueue } from '../memory/linked-queue.ts';
import { CountedMessage } from './chunk-limit.ts';
import type { ReadNetwork } from './client-address.ts';

export interface ConnectionLimit {
  readonly maxConnections: number;
  readonly readNetwork: ReadNetwork;
  /** How long a client may take no bytes of its answer, which stays in memory meanwhile. */
  readonly unreadTimeoutMs: number;
  readonly monotonicMs: () => number;
}

/**
 * Limits the connections of a server, and divides them among networks. At the limit, a new connection replaces one that has no
 * request or waits for its client: for the rest of a request, or for the client to read an answer. Otherwise a client that begins
 * requests and does not end them would keep all others out.
 */
export function limitConnections(
  server: Server,
  { maxConnections, readNetwork, unreadTimeoutMs, monotonicMs }: ConnectionLimit,
): void {
  const places = new ConnectionPlaces<HttpConnection>(maxConnections, monotonicMs);
  const connections = new Map<Socket, HttpConnection>();
  server.on('connection', (socket) => {
    const name = readNetwork(socket.remoteAddress);
    const network = places.enter(name);
    if (network === undefined) {
      socket.destroy();
      return;
    }
    const connection = watchConnection(socket, network, monotonicMs);
    places.add(connection, name);
    connections.set(socket, connection);
    socket.once('close', () => {
      connections.delete(socket);
      places.delete(connection);
    });
  });
  server.on('request', ({ socket }, outgoing) => connections.get(socket)?.begin(outgoing));
  server.once('listening', () => {
    const following = followProgress(places);
    server.once('close', () => following[Symbol.dispose]());
  });
  // Also called for idle connections, with the time that the server has for these.
  server.setTimeout(unreadTimeoutMs, (socket) => {
    if (socket.writableLength > 0 || connections.get(socket)?.isIdle === true) socket.destroy();
  });
}

interface HttpConnection extends PlacedConnection {
  begin(outgoing: ServerResponse): void;
  /** Must be called regularly: a client that has sent or taken many bytes has made progress until now. */
  noteProgress(): void;
}

function watchConnection(socket: Socket, network: NetworkUse, monotonicMs: () => number): HttpConnection {
  /** When its first request began or made progress, or the answer to it was written or sent. */
  let changedMs = monotonicMs();
  /** The bytes received and sent at its last progress. */
  let bytesThen = 0;
  const markChange = (): void => {
    changedMs = monotonicMs();
  };
  const unanswered = createOpenAnswers(markChange);
  return {
    network,
    get changedMs() {
      return changedMs;
    },
    get isIdle() {
      return unanswered.first === undefined;
    },
    /** Answers are sent in the order of their requests, so all wait when the first does. */
    get waitsForClient() {
      const { first } = unanswered;
      return first !== undefined && waitsForClient(first);
    },
    begin: (outgoing) => {
      if (unanswered.first === undefined) markChange();
      unanswered.add(outgoing);
      outgoing.once('prefinish', () => {
        if (unanswered.first === outgoing) markChange();
      });
    },
    noteProgress: () => {
      const { first } = unanswered;
      const bytes = countBytes(socket);
      if (first !== undefined && bytes - bytesThen < PROGRESS_BYTES && !isHeldBack(first)) return;
      bytesThen = bytes;
      if (first !== undefined) markChange();
    },
    evict: () => socket.destroy(),
  };
}

function countBytes(socket: Socket): number {
  return socket.bytesRead + countTaken(socket);
}

/** Whether the client must send the rest of the request, or take the answer. */
function waitsForClient(outgoing: ServerResponse): boolean {
  return outgoing.writableEnded || !(outgoing.req.complete || isHeldBack(outgoing));
}

/** The server reads no more of the request for now: its body waits for its turn, or for the check of its caller. */
function isHeldBack({ req, writableEnded }: ServerResponse): boolean {
  return !writableEnded && req instanceof CountedMessage && req.isHeldBack;
}

/** The answers of requests that are not answered yet. A `Set` would keep answers in memory after they have closed. */
export interface OpenAnswers {
  /** Adds the answer until it closes. */
  add(outgoing: ServerResponse): void;
  readonly first: ServerResponse | undefined;
  list(): ServerResponse[];
}

interface OpenAnswer extends Linked<OpenAnswer> {
  readonly outgoing: ServerResponse;
}

/** `onClosed` is called after an answer has closed. */
export function createOpenAnswers(onClosed: () => void = () => {}): OpenAnswers {
  const answers = new LinkedQueue<OpenAnswer>();
  return {
    add: (outgoing) => {
      const answer: OpenAnswer = { outgoing, previous: undefined, next: undefined };
      answers.add(answer);
      outgoing.once('close', () => {
        answers.delete(answer);
        onClosed();
      });
    },
    get first() {
      return answers.first?.outgoing;
    },
    list: () => answers.list().map(({ outgoing }) => outgoing),
  };
}
