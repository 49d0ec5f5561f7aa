/**
 * Parses one line of a request log: when a request started, gave its first token and ended. They carry no load;
 * `request-load.ts` works out what each server looked like from the other requests of the same recording.
 */

import { MAX_COUNT } from '../schema/input-fields.ts';
import { MAX_MS, MIN_OBSERVED_MS } from '../schema/milliseconds.ts';
import type { RawRecord } from './field-names.ts';
import { openFields } from './parse-record.ts';

/** One logged request. Times are milliseconds, by any clock, as long as a recording has only one. */
export interface LoggedRequest {
  /** The name of the recording. Servers of two recordings are different servers, even with the same name. */
  readonly run: string;
  readonly server: string;
  readonly startMs: number;
  readonly firstTokenMs: number;
  readonly endMs: number;
  readonly inputTokens: number;
  /** How many of these tokens were found in the prefix cache; 0 if the log does not have the number. */
  readonly cachedTokens: number;
  readonly outputTokens: number;
  /** Empty when the log does not name it. */
  readonly targetModel?: string;
  /** The server as callers name it; `run/server` when undefined. */
  readonly serverIp?: string;
}

export type ParsedRequest = { readonly request: LoggedRequest } | { readonly refusal: string };

/** The required fields of a row. */
export const REQUEST_FIELDS = [
  'run',
  'server',
  'start_ms',
  'first_token_ms',
  'end_ms',
  'input_tokens',
  'output_tokens',
] as const;
/** The optional fields of a row. */
export const OPTIONAL_REQUEST_FIELDS = ['cached_tokens', 'target_model', 'server_ip'] as const;

export function parseRequest(record: RawRecord): ParsedRequest {
  const missing = REQUEST_FIELDS.find((name) => record[name] === undefined);
  if (missing !== undefined) return { refusal: `${missing} must be present` };
  const { number, name, text, problems } = openFields(record);
  const request: LoggedRequest = {
    run: name('run'),
    server: name('server'),
    startMs: number('start_ms') ?? Number.NaN,
    firstTokenMs: number('first_token_ms') ?? Number.NaN,
    endMs: number('end_ms') ?? Number.NaN,
    inputTokens: number('input_tokens') ?? Number.NaN,
    cachedTokens: number('cached_tokens') ?? 0,
    outputTokens: number('output_tokens') ?? Number.NaN,
    ...(record.target_model === undefined ? {} : { targetModel: text('target_model') }),
    ...(record.server_ip === undefined ? {} : { serverIp: text('server_ip') }),
  };
  const mistake = problems[0] ?? findRequestMistake(request);
  return mistake === undefined ? { request } : { refusal: mistake };
}

/** Returns why a request is impossible, with the name of the column; undefined if it is possible. */
export function findRequestMistake(request: LoggedRequest): string | undefined {
  const { run, server, startMs, firstTokenMs, endMs, inputTokens, cachedTokens, outputTokens } = request;
  if (run === '') return 'run must be present';
  if (server === '') return 'server must be present';
  const numbers = { startMs, firstTokenMs, endMs, inputTokens, cachedTokens, outputTokens };
  for (const [key, value] of Object.entries(numbers))
    if (!Number.isFinite(value)) return `${COLUMN_OF[key as keyof typeof numbers]} must be a finite number`;
  for (const [key, limit] of Object.entries(LIMITS))
    if (Math.abs(numbers[key as keyof typeof LIMITS]) > limit)
      return `${COLUMN_OF[key as keyof typeof LIMITS]} must be at most ${limit}`;
  if (inputTokens < 0) return 'input_tokens must be 0 or more';
  if (!(cachedTokens >= 0 && cachedTokens <= inputTokens)) return 'cached_tokens must be 0 to input_tokens';
  if (outputTokens < 1) return 'output_tokens must be 1 or more';
  if (firstTokenMs <= startMs) return 'first_token_ms must be after start_ms';
  if (firstTokenMs - startMs < MIN_OBSERVED_MS)
    return `first_token_ms must be at least ${MIN_OBSERVED_MS} after start_ms`;
  if (endMs < firstTokenMs) return 'end_ms must not be before first_token_ms';
  if (outputTokens > 1 && endMs === firstTokenMs)
    return 'end_ms must be after first_token_ms when output_tokens is more than 1';
  if (outputTokens > 1 && (endMs - firstTokenMs) / (outputTokens - 1) < MIN_OBSERVED_MS)
    return `output_tokens must be fewer: each would have taken less than ${MIN_OBSERVED_MS} ms`;
  if (endMs - startMs > MAX_MS) return 'end_ms must be at most one day after start_ms';
  return undefined;
}

/** Times end where those of a `Date` do; tokens are int32, as in proto/. */
const MAX_TIME_MS = 8.64e15;
const LIMITS = {
  startMs: MAX_TIME_MS,
  firstTokenMs: MAX_TIME_MS,
  endMs: MAX_TIME_MS,
  inputTokens: MAX_COUNT,
  cachedTokens: MAX_COUNT,
  outputTokens: MAX_COUNT,
} as const;

const COLUMN_OF = {
  startMs: 'start_ms',
  firstTokenMs: 'first_token_ms',
  endMs: 'end_ms',
  inputTokens: 'input_tokens',
  cachedTokens: 'cached_tokens',
  outputTokens: 'output_tokens',
} as const;

export function ttftOf({ startMs, firstTokenMs }: LoggedRequest): number {
  return firstTokenMs - startMs;
}

/** Returns undefined for an answer of one token, which has no TPOT. */
export function tpotOf({ firstTokenMs, endMs, outputTokens }: LoggedRequest): number | undefined {
  return outputTokens > 1 ? (endMs - firstTokenMs) / (outputTokens - 1) : undefined;
}
