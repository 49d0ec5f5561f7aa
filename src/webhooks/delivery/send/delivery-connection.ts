/**
 * Pools connections to origins (keep-alive), and closes one whose responses may be out of step.
 *
 * HTTP/1.1 does not number responses. When a receiver answers twice, its second response looks like the response to the next
 * request, and a delivery that was refused would count as accepted. These rules prevent that:
 *
 * - Bytes that arrive without a request end the connection, and connections to this origin are no longer kept. A 408 is an exception:
 *   a receiver sends it when it closes an idle connection.
 * - Before it is used again, a connection is idle for 5 ms, and is read for one whole turn of the event loop. So a second response that
 *   has arrived, or closely follows the first, is never taken for the response to the next request.
 * - A second response that arrives later cannot be distinguished from the true response. It shows when the true response arrives
 *   without a request. A connection remembers the deliveries that it carried, and reports them as doubtful, so that they are sent
 *   again. Delivery stays at least once; a wrong success does not last.
 *
 * The number of connections is limited: above the limit an idle one is closed, of the owner with the most idle connections.
 */
import { Client, errors } from 'undici';
import { capByOpenFiles } from '../../../open-files.ts';
import type { VettedAddress } from '../../addresses/address-guard.ts';
import type { AttemptDeadline } from './attempt-deadline.ts';
import { type OpenSocket, openSocket, type SocketOptions } from './delivery-socket.ts';
import { createIdleConnections, type IdleConnections } from './idle-connections.ts';
import { watchForTimeout } from './idle-timeout.ts';
import { tolerateContinue } from './tolerate-continue.ts';

const KEEP_MS = 15_000;
/**
 * Limit of connections in use (which the worker and manual attempts limit too) and idle ones together; at most an eighth of the open
 * files, since HTTP takes a quarter and gRPC half.
 */
const MAX_CONNECTIONS = 512;
const SHARE_OF_OPEN_FILES = 0.125;
/** A connection is idle for at least this long before it is used again, so that a second response within this time is noticed. */
const REST_MS = 5;
const MAX_USES = 1000;
const MAX_HEADER_BYTES = 16_384;
const MAX_MISBEHAVING_ORIGINS = 10_000;

export interface Connection {
  readonly origin: string;
  /** The owner of the delivery that it carries, or carried last. */
  ownerId: string;
  readonly client: Client;
  readonly socket: OpenSocket['socket'];
  readonly remoteAddress: string;
  readonly opened: OpenSocket['timings'];
  /** Ids of the deliveries that it carried, in order. */
  readonly deliveryIds: number[];
  isClosed: boolean;
  /** When it may be used again; monotonic. */
  restedAtMs: number;
  /** A request is written and waits for its response, or for the rest of it. */
  awaitsResponse: boolean;
  /** Called before a request is written. */
  readonly expectResponse: () => void;
}

export interface ConnectionPoolOptions extends SocketOptions {
  /** Reports deliveries whose responses may have belonged to other requests. */
  readonly onDoubt: (deliveryIds: readonly number[], origin: string) => void;
  /** Above this number of connections idle ones are closed. Default: 512, or an eighth of the open files if that is less. */
  readonly maxConnections?: number | undefined;
}

export interface ConnectionPool {
  /** Takes an idle connection for a delivery of this owner, or opens one. */
  acquire(target: VettedAddress, ownerId: string, deadline: AttemptDeadline): Promise<Connection>;
  /** Keeps the connection after a complete response. */
  release(connection: Connection): void;
  /** Closes the connection in any other case. */
  discard(connection: Connection): void;
  close(): Promise<void>;
  readonly size: number;
}

interface PoolState {
  readonly options: ConnectionPoolOptions;
  readonly maxConnections: number;
  readonly idle: IdleConnections<Connection>;
  readonly all: Set<Connection>;
  /** Origins that sent a response without a request. */
  readonly misbehaving: Set<string>;
}

export function createConnectionPool(options: ConnectionPoolOptions): ConnectionPool {
  const maxConnections = options.maxConnections ?? capByOpenFiles(MAX_CONNECTIONS, SHARE_OF_OPEN_FILES);
  const idle = createIdleConnections<Connection>();
  const state: PoolState = { options, maxConnections, idle, all: new Set(), misbehaving: new Set() };
  return {
    acquire: async (target, ownerId, deadline) => {
      const connection = (await takeKept(state, target)) ?? (await open(state, target, deadline));
      connection.ownerId = ownerId;
      return connection;
    },
    release: (connection) => release(state, connection),
    discard: (connection) => discard(state, connection),
    close: () => closeAll(state),
    get size() {
      return state.all.size;
    },
  };
}

async function takeKept(state: PoolState, { origin, addresses }: VettedAddress): Promise<Connection | undefined> {
  for (let found = takeRested(state, origin); found !== undefined; found = takeRested(state, origin)) {
    await endTurn();
    if (isUsable(found) && addresses.includes(normalizeAddress(found.remoteAddress))) return found;
    discard(state, found);
  }
  return undefined;
}

/** Takes the connection that has been idle longest, if it has been idle for `REST_MS`. */
function takeRested(state: PoolState, origin: string): Connection | undefined {
  const found = state.idle.findOldest(origin);
  if (found === undefined || found.restedAtMs > state.options.monotonicMs()) return undefined;
  state.idle.delete(found);
  return found;
}

async function open(state: PoolState, target: VettedAddress, deadline: AttemptDeadline): Promise<Connection> {
  const { socket, timings } = await openSocket(target, state.options, deadline);
  const connection: Connection = {
    origin: target.origin,
    ownerId: '',
    client: createClient(target.origin, socket),
    socket,
    remoteAddress: socket.remoteAddress ?? '',
    opened: timings,
    deliveryIds: [],
    isClosed: false,
    restedAtMs: 0,
    awaitsResponse: true,
    expectResponse: tolerateContinue(socket),
  };
  const hasTimedOut = watchForTimeout(socket);
  connection.client.on('disconnect', (_, __, error) => {
    if (!connection.awaitsResponse && isUnrequestedResponse(error) && !hasTimedOut()) distrust(state, connection);
    discard(state, connection);
  });
  state.all.add(connection);
  closeExcess(state);
  return connection;
}

/** Closes idle connections above the limit; those in use stay. */
function closeExcess(state: PoolState): void {
  while (state.all.size > state.maxConnections) {
    const excess = state.idle.findExcess();
    if (excess === undefined) return;
    discard(state, excess);
  }
}

function distrust({ misbehaving, options }: PoolState, { origin, deliveryIds }: Connection): void {
  if (misbehaving.size >= MAX_MISBEHAVING_ORIGINS) misbehaving.clear();
  misbehaving.add(origin);
  // The first response on a connection can only belong to the first delivery.
  const doubtful = deliveryIds.slice(1);
  if (doubtful.length > 0) options.onDoubt(doubtful, origin);
}

function release(state: PoolState, connection: Connection): void {
  const { origin, deliveryIds } = connection;
  if (!isUsable(connection) || state.misbehaving.has(origin)) {
    discard(state, connection);
    return;
  }
  // The connection is not used again, but read until it closes by itself.
  if (deliveryIds.length >= MAX_USES) return;
  connection.restedAtMs = state.options.monotonicMs() + REST_MS;
  state.idle.add(connection);
  closeExcess(state);
}

function discard(state: PoolState, connection: Connection): void {
  connection.isClosed = true;
  state.all.delete(connection);
  state.idle.delete(connection);
  // Pending requests have already failed with the error.
  connection.client.destroy().catch(() => {});
}

async function closeAll({ all, idle }: PoolState): Promise<void> {
  const closing = [...all].map((connection) => connection.client.destroy());
  for (const connection of all) connection.isClosed = true;
  all.clear();
  idle.clear();
  await Promise.allSettled(closing);
}

/** The client ends the socket with one of these when bytes arrive without a request. */
function isUnrequestedResponse(error: unknown): boolean {
  if (error instanceof errors.HTTPParserError) return true;
  return error instanceof errors.SocketError && error.message === 'bad response';
}

/**
 * The present turn of the event loop may have read the sockets already. The client waits for another turn before it writes on a
 * connection that was used before: by then every socket has delivered the bytes that it held at the call.
 */
function endTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Whether the connection is open. These flags of the socket change before its `close` event. */
function isUsable({ isClosed, socket }: Connection): boolean {
  return !isClosed && !socket.destroyed && socket.writable && !socket.readableEnded;
}

/** `::ffff:1.2.3.4`, as a dual-stack socket reports it, is `1.2.3.4`. */
function normalizeAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}

/** A client on one socket; it ends with the socket. The sender keeps the deadlines. */
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
      // Called later, since the client does not resume its queue for a callback within the call.
      queueMicrotask(() => callback(null, socket));
    },
  });
}
