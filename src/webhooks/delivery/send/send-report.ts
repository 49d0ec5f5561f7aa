/** Builds the report of an attempt: the time of its phases, its response or error, and the first 8 KiB of the response body. */
import { errors } from 'undici';
import { type Outcome, toOutcome } from '../schedule/attempt-outcome.ts';
import { parseRetryAfterMs } from '../schedule/retry-policy.ts';
import { DeadlinePassed } from './attempt-deadline.ts';
import type { Connection } from './delivery-connection.ts';
import { isTlsError } from './delivery-socket.ts';

const MAX_KEPT_BYTES = 8192;

export interface SendTimings {
  readonly dns: number | null;
  /** Null on a kept connection. */
  readonly connect: number | null;
  readonly tls: number | null;
  readonly firstByte: number | null;
  readonly total: number;
}

export interface SendReport {
  readonly outcome: Outcome;
  /** HTTP status; 0 without a response. */
  readonly status: number;
  readonly reason: string | null;
  readonly remoteAddress: string | null;
  readonly timingsMs: SendTimings;
  readonly responseHeaders: Readonly<Record<string, string | string[]>>;
  readonly responseBody: Uint8Array;
}

/** The progress of an attempt that is under way. */
export interface Progress {
  dns: number | null;
  connection: Connection | undefined;
  isReused: boolean;
  firstByte: number | null;
  status: number;
  headers: Record<string, string | string[]>;
  kept: Uint8Array[];
  keptBytes: number;
  /** Responses with 1xx before the final one. */
  interim: number;
}

export function createProgress(): Progress {
  return {
    dns: null,
    connection: undefined,
    isReused: false,
    firstByte: null,
    status: 0,
    headers: {},
    kept: [],
    keptBytes: 0,
    interim: 0,
  };
}

export class TooManyInterimResponses extends Error {}

/** Keeps the beginning of the body, for the log. */
export function keepBody(progress: Progress, chunk: Uint8Array): void {
  const room = MAX_KEPT_BYTES - progress.keptBytes;
  if (room <= 0) return;
  // A copy: the chunk is a view on the parser's memory.
  progress.kept.push(Buffer.from(chunk.subarray(0, room)));
  progress.keptBytes += Math.min(room, chunk.byteLength);
}

/** Builds the report of a response; its status decides the outcome, even if the body is incomplete. */
export function reportResponse(progress: Progress, totalMs: number, nowMs: number): SendReport {
  const retryAfter = progress.headers['retry-after'];
  const retryAfterMs = parseRetryAfterMs(Array.isArray(retryAfter) ? retryAfter[0] : retryAfter, nowMs);
  return report(toOutcome(progress.status, retryAfterMs), null, progress, totalMs);
}

/** The report of an attempt that could not begin. */
export function reportUnsent(reason: string, progress = createProgress(), totalMs = 0): SendReport {
  return report({ kind: 'unreachable', reason, stage: 'before-connect' }, reason, progress, totalMs);
}

export function reportUnreachable(reason: string, progress: Progress, totalMs: number): SendReport {
  const stage = progress.connection === undefined ? 'connect' : 'response';
  return report({ kind: 'unreachable', reason, stage }, reason, progress, totalMs);
}

export function reportBlocked(progress: Progress, totalMs: number): SendReport {
  return report({ kind: 'blocked' }, 'blocked address', progress, totalMs);
}

function report(outcome: Outcome, reason: string | null, progress: Progress, totalMs: number): SendReport {
  const { connection, isReused } = progress;
  const opened = isReused ? undefined : connection?.opened;
  return {
    outcome,
    status: progress.status,
    reason,
    remoteAddress: connection?.remoteAddress ?? null,
    timingsMs: {
      dns: round(progress.dns),
      connect: round(opened?.connectMs),
      tls: round(opened?.tlsMs),
      firstByte: round(progress.firstByte),
      total: round(totalMs) ?? 0,
    },
    responseHeaders: progress.headers,
    responseBody: progress.kept.length === 1 ? progress.kept[0]! : Buffer.concat(progress.kept),
  };
}

function round(ms: number | null | undefined): number | null {
  return ms === null || ms === undefined ? null : Math.round(ms * 100) / 100;
}

/** A short reason for the owner of the hook. It reveals nothing about the network of this service. */
export function describeFailure(error: unknown, progress: Progress): string {
  if (error instanceof DeadlinePassed)
    return progress.connection === undefined ? 'connect timeout' : 'response timeout';
  if (error instanceof TooManyInterimResponses) return 'too many interim responses';
  if (error instanceof errors.HeadersOverflowError) return 'response headers too large';
  if (isMalformed(error)) return 'malformed response';
  if (isTlsError(error)) return `certificate or TLS error: ${(error as NodeJS.ErrnoException).code}`;
  const code = (error as NodeJS.ErrnoException).code ?? '';
  if (code === 'ECONNREFUSED') return 'connection refused';
  if (code === 'EHOSTUNREACH' || code === 'ENETUNREACH' || code === 'EADDRNOTAVAIL') return 'host unreachable';
  if (code === 'ETIMEDOUT') return 'connect timeout';
  return progress.connection === undefined ? 'connection failed' : 'connection closed before the response';
}

/** Whether the receiver sent bytes that are no HTTP response, or a response of ambiguous length (RFC 9112 §6.3). */
function isMalformed(error: unknown): boolean {
  return error instanceof errors.HTTPParserError || error instanceof errors.ResponseContentLengthMismatchError;
}
