/**
 * Sends one attempt over HTTP, follows no redirect, and reports its outcome; never throws. One absolute deadline covers name
 * resolution, connection, request and response, however slowly bytes arrive. The status decides the outcome as soon as the head is
 * complete. Up to 64 KiB of the body are read and 8 KiB kept (`MAX_KEPT_BYTES` in `send-report.ts`), for the log only and without
 * decompression.
 */
import { type Dispatcher, errors } from 'undici';
import type { AddressGuard, VettedAddress, Vetting } from '../../addresses/address-guard.ts';
import { type AttemptDeadline, startDeadline } from './attempt-deadline.ts';
import { type Connection, type ConnectionPool, createConnectionPool } from './delivery-connection.ts';
import { ForbiddenAddress, isShortage } from './delivery-socket.ts';
import {
  createProgress,
  describeFailure,
  keepBody,
  type Progress,
  reportBlocked,
  reportResponse,
  reportUnreachable,
  reportUnsent,
  type SendReport,
  TooManyInterimResponses,
} from './send-report.ts';

export const ATTEMPT_DEADLINE_MS = 15_000;
const MAX_READ_BYTES = 65_536;
const MAX_INTERIM_RESPONSES = 16;

export interface SendRequest {
  readonly deliveryId: number;
  /** Kept connections are shared fairly among owners; attempts without an owner count as one owner. */
  readonly ownerId?: string | undefined;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly deadlineMs?: number;
  /** Called when a new connection is open; not for a kept connection, which may have been closed meanwhile. */
  readonly onConnected?: (() => void) | undefined;
  /** Called when the receiver has responded and the whole body has left this process, so that its memory may be freed. */
  readonly onBodySent?: (() => void) | undefined;
}

export interface SenderOptions {
  readonly guard: AddressGuard;
  readonly nowMs: () => number;
  readonly monotonicMs: () => number;
  /** Reports deliveries whose responses may have belonged to other requests. */
  readonly onDoubt?: (deliveryIds: readonly number[], origin: string) => void;
  readonly ca?: readonly string[] | undefined;
  readonly maxConnections?: number | undefined;
}

export interface Sender {
  send(request: SendRequest): Promise<SendReport>;
  close(): Promise<void>;
  readonly connections: number;
}

export function createSender(options: SenderOptions): Sender {
  const { guard, monotonicMs } = options;
  const pool = createConnectionPool({
    isAllowed: (address) => guard.isAllowed(address),
    monotonicMs,
    ca: options.ca,
    maxConnections: options.maxConnections,
    onDoubt: options.onDoubt ?? (() => {}),
  });

  return {
    send: (request) => send({ ...options, pool }, request),
    close: () => pool.close(),
    get connections() {
      return pool.size;
    },
  };
}

interface SendDependencies extends SenderOptions {
  readonly pool: ConnectionPool;
}

type Unresolved = Extract<Vetting, { kind: 'unresolved' }>;

async function send(dependencies: SendDependencies, request: SendRequest): Promise<SendReport> {
  const { guard, pool, nowMs, monotonicMs } = dependencies;
  const startMs = monotonicMs();
  const elapsed = () => monotonicMs() - startMs;
  const progress = createProgress();
  const deadline = startDeadline(request.deadlineMs ?? ATTEMPT_DEADLINE_MS);
  try {
    const vetting = await raceDeadline(guard.vet(request.url), deadline);
    progress.dns = elapsed();
    if (vetting.kind === 'forbidden') return reportBlocked(progress, elapsed());
    if (vetting.kind === 'unresolved') return reportUnresolved(vetting, progress, elapsed());
    await exchange(request, vetting.target, { pool, progress, elapsed, deadline });
    return reportResponse(progress, elapsed(), nowMs());
  } catch (error) {
    if (progress.connection !== undefined) pool.discard(progress.connection);
    return reportError(error, progress, { totalMs: elapsed(), nowMs: nowMs() });
  } finally {
    deadline.clear();
  }
}

function reportUnresolved({ reason, isOwnFault }: Unresolved, progress: Progress, totalMs: number): SendReport {
  return isOwnFault ? reportUnsent(reason, progress, totalMs) : reportUnreachable(reason, progress, totalMs);
}

interface EndOfAttempt {
  readonly totalMs: number;
  readonly nowMs: number;
}

function reportError(error: unknown, progress: Progress, { totalMs, nowMs }: EndOfAttempt): SendReport {
  if (error instanceof ForbiddenAddress) return reportBlocked(progress, totalMs);
  // The head was complete, so the status counts, although the body of the response was not complete.
  if (progress.status >= 200) return reportResponse(progress, totalMs, nowMs);
  if (progress.connection === undefined && isShortage(error)) return reportUnsent('no free socket', progress, totalMs);
  return reportUnreachable(describeFailure(error, progress), progress, totalMs);
}

function raceDeadline<T>(work: Promise<T>, deadline: AttemptDeadline): Promise<T> {
  return new Promise((resolve, reject) => {
    deadline.onPassed(reject);
    work.then(resolve, reject);
  });
}

interface ExchangeState {
  readonly pool: ConnectionPool;
  readonly progress: Progress;
  readonly elapsed: () => number;
  readonly deadline: AttemptDeadline;
}

async function exchange(request: SendRequest, target: VettedAddress, state: ExchangeState): Promise<void> {
  const { pool, progress, deadline } = state;
  progress.connection = undefined;
  const connection = await pool.acquire(target, request.ownerId ?? '', deadline);
  progress.connection = connection;
  progress.isReused = connection.deliveryIds.length > 0;
  if (!progress.isReused) request.onConnected?.();
  try {
    await readResponse(request, target, connection, state);
    // After an early response the operating system may still send the rest of the body from this memory.
    if (isWritten(connection)) request.onBodySent?.();
    // After interim responses the connection is not used again.
    if (progress.interim > 0) pool.discard(connection);
    else pool.release(connection);
  } catch (error) {
    if (deadline.hasPassed || !wasClosedMeanwhile(error, connection, progress)) throw error;
    pool.discard(connection);
    await exchange(request, target, state);
  }
}

function isWritten({ socket }: Connection): boolean {
  return !socket.destroyed && socket.writableLength === 0;
}

/** Whether the receiver closed a kept connection before or while it was used again, so that the request may be repeated. */
function wasClosedMeanwhile(error: unknown, { awaitsResponse }: Connection, { isReused, status }: Progress): boolean {
  if (!isReused || status !== 0) return false;
  if (!awaitsResponse) return true;
  const code = (error as NodeJS.ErrnoException).code;
  return error instanceof errors.SocketError || code === 'ECONNRESET' || code === 'EPIPE';
}

function readResponse(
  request: SendRequest,
  { url }: VettedAddress,
  connection: Connection,
  state: ExchangeState,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const reader = createResponseReader(state, {
    onStart: () => {
      connection.deliveryIds.push(request.deliveryId);
      connection.awaitsResponse = true;
      connection.expectResponse();
    },
    onEnd: () => {
      connection.awaitsResponse = false;
      resolve();
    },
    onError: reject,
  });
  connection.client.dispatch(
    { method: 'POST', path: url.pathname + url.search, headers: listHeaders(request.headers), body: request.body },
    reader,
  );
  return promise;
}

interface ResponseEvents {
  /** Called just before the request is written. */
  readonly onStart: () => void;
  readonly onEnd: () => void;
  readonly onError: (error: Error) => void;
}

/** Reads status, headers and the beginning of the body, up to the deadline and the limits. */
function createResponseReader({ progress, elapsed, deadline }: ExchangeState, events: ResponseEvents) {
  const { onStart, onEnd, onError } = events;
  let readBytes = 0;
  let abort: ((reason: Error) => void) | undefined;
  const giveUp = (reason: Error) => {
    abort?.(reason);
    onError(reason);
  };
  deadline.onPassed(giveUp);
  return {
    onRequestStart: (controller: Dispatcher.DispatchController) => {
      abort = (reason) => controller.abort(reason);
      if (deadline.hasPassed) deadline.onPassed(giveUp);
      else onStart();
    },
    onResponseStart: (_: Dispatcher.DispatchController, status: number, headers: object) => {
      if (status >= 200) return recordHead(progress, { status, headers, atMs: elapsed() });
      progress.interim += 1;
      if (progress.interim > MAX_INTERIM_RESPONSES) giveUp(new TooManyInterimResponses());
    },
    onResponseData: (_: Dispatcher.DispatchController, chunk: Uint8Array) => {
      readBytes += chunk.byteLength;
      keepBody(progress, chunk);
      if (readBytes > MAX_READ_BYTES) giveUp(new EnoughRead());
    },
    onResponseEnd: onEnd,
    onResponseError: (_: Dispatcher.DispatchController, error: Error) => onError(error),
  };
}

interface ResponseHead {
  readonly status: number;
  readonly headers: object;
  readonly atMs: number;
}

function recordHead(progress: Progress, { status, headers, atMs }: ResponseHead): void {
  progress.firstByte = atMs;
  progress.status = status;
  progress.headers = headers as Progress['headers'];
}

class EnoughRead extends Error {}

/** Headers of the connection, which only the HTTP client sets. */
const CONNECTION_HEADERS = new Set([
  'host',
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'content-length',
  'upgrade',
  'te',
  'trailer',
  'expect',
]);

/** The headers as a flat list: name, value, name, value. */
function listHeaders(headers: Readonly<Record<string, string>>): string[] {
  const list: string[] = [];
  for (const name in headers) if (!CONNECTION_HEADERS.has(name.toLowerCase())) list.push(name, headers[name] ?? '');
  return list;
}
