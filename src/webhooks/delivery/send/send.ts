/**
 * Sends one attempt and reports what came of it; never throws. One absolute deadline covers name resolution, connection,
 * request and answer, whatever trickles in. The status decides as soon as the head is there; of the body 64 KiB are read
 * and 8 KiB kept, for the log only. Redirects are not followed and nothing is inflated.
 */
import { errors } from 'undici';
import type { AddressGuard, VettedTarget } from '../../addresses/address-guard.ts';
import { type Connection, type ConnectionPool, createConnectionPool } from './delivery-connection.ts';
import { ForbiddenAddress } from './delivery-socket.ts';
import {
  createProgress,
  DeadlinePassed,
  describeFailure,
  keepBody,
  type Progress,
  reportAnswer,
  reportBlocked,
  reportUnreachable,
  type SendReport,
  TooManyInterimAnswers,
} from './send-report.ts';

export const ATTEMPT_DEADLINE_MS = 15_000;
const MAX_READ_BYTES = 65_536;
const MAX_INTERIM_ANSWERS = 16;

export interface SendRequest {
  readonly deliveryId: number;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly deadlineMs?: number;
  /** A connection was made for it; not called for one that was kept, which may have ended meanwhile. */
  readonly onConnected?: (() => void) | undefined;
}

export interface SenderOptions {
  readonly guard: AddressGuard;
  readonly nowMs: () => number;
  readonly monotonicMs: () => number;
  readonly onDoubt?: (deliveryIds: readonly number[], origin: string) => void;
  readonly ca?: readonly string[] | undefined;
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
    onDoubt: options.onDoubt ?? (() => {}),
  });

  const send = async (request: SendRequest): Promise<SendReport> => {
    const startMs = monotonicMs();
    const elapsed = () => monotonicMs() - startMs;
    const progress = createProgress();
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(new DeadlinePassed()), request.deadlineMs ?? ATTEMPT_DEADLINE_MS);
    try {
      const vetting = await raceDeadline(guard.vet(request.url), deadline.signal);
      progress.dns = elapsed();
      if (vetting.kind === 'refused') return reportBlocked(progress, elapsed());
      if (vetting.kind === 'unresolved') return reportUnreachable(vetting.reason, progress, elapsed());
      await exchange(request, vetting.target, { pool, progress, elapsed, signal: deadline.signal });
      return reportAnswer(progress, elapsed(), options.nowMs());
    } catch (error) {
      if (progress.connection !== undefined) pool.discard(progress.connection);
      if (error instanceof ForbiddenAddress) return reportBlocked(progress, elapsed());
      // The head was whole: the receiver has decided, only its body did not end well.
      if (progress.status >= 200) return reportAnswer(progress, elapsed(), options.nowMs());
      return reportUnreachable(describeFailure(error, progress), progress, elapsed());
    } finally {
      clearTimeout(timer);
    }
  };

  return {
    send,
    close: () => pool.close(),
    get connections() {
      return pool.size;
    },
  };
}

function raceDeadline<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    work.then(resolve, reject);
  });
}

interface Exchange {
  readonly pool: ConnectionPool;
  readonly progress: Progress;
  readonly elapsed: () => number;
  readonly signal: AbortSignal;
}

async function exchange(request: SendRequest, target: VettedTarget, parts: Exchange): Promise<void> {
  const { pool, progress, signal } = parts;
  progress.connection = undefined;
  const connection = await pool.acquire(target, signal);
  progress.connection = connection;
  progress.isKept = connection.carried.length > 0;
  if (!progress.isKept) request.onConnected?.();
  connection.carried.push(request.deliveryId);
  connection.isAsked = true;
  connection.expectAnswer();
  try {
    await readAnswer(request, target, connection, parts);
    // Who says more than the answer is not listened to twice.
    if (progress.interim > 0) pool.discard(connection);
    else pool.release(connection);
  } catch (error) {
    if (!wasClosedMeanwhile(error, progress)) throw error;
    pool.discard(connection);
    await exchange(request, target, parts);
  }
}

/** A receiver may close a kept connection at the very moment in which it is used again: that is no answer of its. */
function wasClosedMeanwhile(error: unknown, progress: Progress): boolean {
  if (!progress.isKept || progress.status !== 0) return false;
  const code = (error as NodeJS.ErrnoException).code;
  return error instanceof errors.SocketError || code === 'ECONNRESET' || code === 'EPIPE';
}

function readAnswer(
  request: SendRequest,
  { url }: VettedTarget,
  connection: Connection,
  { progress, elapsed, signal }: Exchange,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let readBytes = 0;
    let abort: ((reason: Error) => void) | undefined;
    const give = (reason: Error) => {
      abort?.(reason);
      reject(reason);
    };
    signal.addEventListener('abort', () => give(signal.reason as Error), { once: true });
    connection.client.dispatch(
      {
        method: 'POST',
        path: url.pathname + url.search,
        headers: listHeaders(request.headers),
        body: request.body,
      },
      {
        onRequestStart: (controller) => {
          abort = (reason) => controller.abort(reason);
          if (signal.aborted) give(signal.reason as Error);
        },
        onResponseStart: (_, status, headers) => {
          if (status < 200) {
            progress.interim += 1;
            if (progress.interim > MAX_INTERIM_ANSWERS) give(new TooManyInterimAnswers());
            return;
          }
          progress.firstByte = elapsed();
          progress.status = status;
          progress.headers = headers as Record<string, string | string[]>;
        },
        onResponseData: (_, chunk) => {
          readBytes += chunk.byteLength;
          keepBody(progress, chunk);
          if (readBytes > MAX_READ_BYTES) give(new EnoughRead());
        },
        onResponseEnd: () => {
          connection.isAsked = false;
          resolve();
        },
        onResponseError: (_, error) => reject(error),
      },
    );
  });
}

class EnoughRead extends Error {}

/** What belongs to the connection is ours alone to say. */
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

/** Names and values in turn. */
function listHeaders(headers: Readonly<Record<string, string>>): string[] {
  const list: string[] = [];
  for (const name in headers) if (!CONNECTION_HEADERS.has(name.toLowerCase())) list.push(name, headers[name] ?? '');
  return list;
}
