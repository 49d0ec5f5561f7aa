/**
 * Connections that are kept for the next delivery to the same origin, one undici client each.
 *
 * HTTP/1.1 has no name for an answer: a receiver that answers twice makes its second answer look like the answer to the
 * next request, and a delivery that was refused would count as accepted. Against that:
 *
 * - Whatever arrives while nothing is asked ends the connection, and its origin gets no kept connections any more.
 * - A connection rests before it is used again, and is read through a whole turn of the event loop just before. So an
 *   answer that has come, or comes close behind the one before, is never taken for the next one.
 * - One that is under way at that moment cannot be told from the true answer. It shows when that comes, for which no
 *   request is left: a connection remembers the deliveries whose answers it carried, and they are reported as doubtful
 *   (they are sent again). At least once holds; a wrong success does not stay.
 */
import { Client, errors } from 'undici';
import type { VettedTarget } from '../../addresses/address-guard.ts';
import { type OpenSocket, openSocket, type SocketOptions } from './delivery-socket.ts';
import { tolerateContinue } from './tolerate-continue.ts';

const KEEP_MS = 15_000;
/** As long as a second answer may lag behind the first and be found before the connection is used again. */
const REST_MS = 5;
const MAX_USES = 1000;
const MAX_HEADER_BYTES = 16_384;
const MAX_MISBEHAVING_ORIGINS = 10_000;

export interface Connection {
  readonly origin: string;
  readonly client: Client;
  readonly socket: OpenSocket['socket'];
  readonly remoteAddress: string;
  readonly opened: OpenSocket['timings'];
  /** Ids of the deliveries that it carried, the last one last. */
  readonly carried: number[];
  isClosed: boolean;
  /** From then on it may be used again. */
  restedAtMs: number;
  /** A request waits for its answer, or for the rest of it. */
  isAsked: boolean;
  /** Called before a request is written. */
  readonly expectAnswer: () => void;
}

export interface ConnectionPoolOptions extends SocketOptions {
  /** Deliveries whose answers may have been another's. */
  readonly onDoubt: (deliveryIds: readonly number[], origin: string) => void;
}

export interface ConnectionPool {
  acquire(target: VettedTarget, signal: AbortSignal): Promise<Connection>;
  /** Gives it back after a whole answer. */
  release(connection: Connection): void;
  /** Ends it after anything else. */
  discard(connection: Connection): void;
  close(): Promise<void>;
  readonly size: number;
}

export function createConnectionPool(options: ConnectionPoolOptions): ConnectionPool {
  const idle = new Map<string, Connection[]>();
  const all = new Set<Connection>();
  const misbehaving = new Set<string>();

  const discard = (connection: Connection): void => {
    connection.isClosed = true;
    all.delete(connection);
    removeIdle(connection);
    // Its errors have been told to whoever used it.
    connection.client.destroy().catch(() => {});
  };
  const removeIdle = (connection: Connection): void => {
    const list = idle.get(connection.origin);
    const at = list?.indexOf(connection) ?? -1;
    if (at >= 0) list?.splice(at, 1);
    if (list?.length === 0) idle.delete(connection.origin);
  };
  /** The one that has been silent longest, if for long enough. */
  const takeRested = (origin: string): Connection | undefined => {
    const found = idle.get(origin)?.[0];
    if (found === undefined || found.restedAtMs > options.monotonicMs()) return undefined;
    removeIdle(found);
    return found;
  };
  const distrust = (connection: Connection): void => {
    if (misbehaving.size >= MAX_MISBEHAVING_ORIGINS) misbehaving.clear();
    misbehaving.add(connection.origin);
    // The first answer on a connection can only have been its own.
    const doubtful = connection.carried.slice(1);
    if (doubtful.length > 0) options.onDoubt(doubtful, connection.origin);
  };

  const open = async (target: VettedTarget, signal: AbortSignal): Promise<Connection> => {
    const { socket, timings } = await openSocket(target, options, signal);
    const client = createClient(target.origin, socket);
    const remoteAddress = socket.remoteAddress ?? '';
    const connection: Connection = {
      origin: target.origin,
      client,
      socket,
      remoteAddress,
      opened: timings,
      carried: [],
      isClosed: false,
      restedAtMs: 0,
      isAsked: true,
      expectAnswer: tolerateContinue(socket),
    };
    client.on('disconnect', (_, __, error) => {
      if (!connection.isAsked && isUnaskedAnswer(error)) distrust(connection);
      discard(connection);
    });
    all.add(connection);
    return connection;
  };

  return {
    acquire: async (target, signal) => {
      for (let found = takeRested(target.origin); found !== undefined; found = takeRested(target.origin)) {
        await readWhatHasArrived();
        if (isUsable(found) && target.addresses.includes(normalizeAddress(found.remoteAddress))) return found;
        discard(found);
      }
      return await open(target, signal);
    },
    release: (connection) => {
      if (!isUsable(connection)) return discard(connection);
      if (misbehaving.has(connection.origin)) return discard(connection);
      // Used no more, but listened to until it closes by itself.
      if (connection.carried.length >= MAX_USES) return;
      connection.restedAtMs = options.monotonicMs() + REST_MS;
      const list = idle.get(connection.origin) ?? [];
      idle.set(connection.origin, list);
      list.push(connection);
    },
    discard,
    close: async () => {
      const closing = [...all].map((connection) => connection.client.destroy());
      for (const connection of all) connection.isClosed = true;
      all.clear();
      idle.clear();
      await Promise.allSettled(closing);
    },
    get size() {
      return all.size;
    },
  };
}

/** Something came although nothing was asked: the client ends the socket with one of these. */
function isUnaskedAnswer(error: unknown): boolean {
  if (error instanceof errors.HTTPParserError) return true;
  return error instanceof errors.SocketError && error.message === 'bad response';
}

/** A whole turn of the event loop: afterwards every socket has given what it had when this was called. */
function readWhatHasArrived(): Promise<void> {
  // The first ends the turn that is under way, which may have asked the sockets already.
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}

/** The end of a socket shows here before its event comes. */
function isUsable({ isClosed, socket }: Connection): boolean {
  return !isClosed && !socket.destroyed && socket.writable && !socket.readableEnded;
}

/** `::ffff:1.2.3.4`, which a dual-stack socket says, is `1.2.3.4`. */
function normalizeAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}

/** A client on one socket; when that has ended, so has the client. Deadlines are kept by the one who sends. */
function createClient(origin: string, socket: OpenSocket['socket']): Client {
  let isUsed = false;
  return new Client(origin, {
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: KEEP_MS,
    keepAliveMaxTimeout: KEEP_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    connect: (_, callback) => {
      if (isUsed) return callback(new errors.SocketError('closed'), null);
      isUsed = true;
      // Not within the call: the client looks at its queue again only after one that comes later.
      queueMicrotask(() => callback(null, socket));
    },
  });
}
