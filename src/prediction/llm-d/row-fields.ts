/**
 * Defines the fields of llm-d's rows, and reads each as pydantic does, except that times must be text. Numbers as text are accepted.
 * Fields that are not listed here are ignored.
 */
import { Buffer } from 'node:buffer';
import { findTextFault } from '../../database/storable-text.ts';
import { MAX_COUNT } from '../schema/input-fields.ts';
import { readIsoTime } from '../schema/iso-time.ts';
import type { Fault } from './faults.ts';

/** The value of a field, or its validation error without the path. */
type Read<T> = T | Omit<Fault, 'loc'>;

export interface RowField<T> {
  readonly name: string;
  /** The value of an absent field; undefined if the field is required. */
  readonly absent: T | undefined;
  readonly read: (value: unknown) => Read<T>;
}

export function isFault<T extends number | string>(read: Read<T>): read is Omit<Fault, 'loc'> {
  return typeof read === 'object';
}

/** Limits names, because clients choose them and samples keep them. */
const MAX_TEXT_BYTES = 256;
const NUMBER = /^\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*$/;
const INTEGER = /^\s*[+-]?\d+(\.0*)?\s*$/;

function count(name: string, absent?: number): RowField<number> {
  return { name, absent, read: (value) => checkMaximum(readCount(value), MAX_COUNT) };
}

/** A share between 0 and 1, not a percentage. */
function share(name: string): RowField<number> {
  return { name, absent: undefined, read: (value) => checkMaximum(readNumber(value), 1) };
}

function milliseconds(name: string): RowField<number> {
  return { name, absent: undefined, read: readNumber };
}

function text(name: string): RowField<string> {
  return { name, absent: '', read: readText };
}

const LOAD_FIELDS = {
  kvCacheUsage: share('kv_cache_percentage'),
  inputTokenLength: count('input_token_length'),
  numRequestWaiting: count('num_request_waiting'),
  numRequestRunning: count('num_request_running'),
  numTokensGenerated: count('num_tokens_generated'),
  prefixCacheScore: share('prefix_cache_score'),
  podType: text('pod_type'),
  prefillTokensInFlight: count('prefill_tokens_in_flight', 0),
  decodeTokensInFlight: count('decode_tokens_in_flight', 0),
  encoderInputSize: count('encoder_input_size', 0),
  encoderMatchedSize: count('encoder_matched_size', 0),
  /** Our addition: llm-d's interface does not name the server. */
  endpoint: text('endpoint'),
} as const;

export const PREDICTION_FIELDS = LOAD_FIELDS;

export const TRAINING_FIELDS = {
  ...LOAD_FIELDS,
  actualTtftMs: milliseconds('actual_ttft_ms'),
  actualTpotMs: milliseconds('actual_tpot_ms'),
  /** Milliseconds since the epoch; NaN when absent. */
  timestamp: { name: 'timestamp', absent: Number.NaN, read: readTime } as RowField<number>,
} as const;

export type RowFields = Readonly<Record<string, RowField<number> | RowField<string>>>;
export type RowOf<F extends RowFields> = {
  readonly [Name in keyof F]: F[Name] extends RowField<infer T> ? T : never;
};

function readCount(value: unknown): Read<number> {
  if (typeof value === 'number' && value >= 0 && Number.isInteger(value)) return value;
  const number = toNumber(value, INTEGER);
  if (number === undefined) {
    if (typeof value === 'string')
      return {
        msg: 'Input should be a valid integer, unable to parse string as an integer',
        type: 'int_parsing',
      };
    return { msg: 'Input should be a valid integer', type: 'int_type' };
  }
  if (!Number.isFinite(number)) return NOT_FINITE;
  if (!Number.isInteger(number))
    return { msg: 'Input should be a valid integer, got a number with a fractional part', type: 'int_from_float' };
  return checkMinimum(number);
}

function readNumber(value: unknown): Read<number> {
  if (typeof value === 'number' && value >= 0 && value <= Number.MAX_VALUE) return value;
  const number = toNumber(value, NUMBER);
  if (number === undefined) {
    if (typeof value === 'string')
      return { msg: 'Input should be a valid number, unable to parse string as a number', type: 'float_parsing' };
    return { msg: 'Input should be a valid number', type: 'float_type' };
  }
  return Number.isFinite(number) ? checkMinimum(number) : NOT_FINITE;
}

const NOT_FINITE = { msg: 'Input should be a finite number', type: 'finite_number' };

function toNumber(value: unknown, pattern: RegExp): number | undefined {
  if (typeof value === 'number') return value;
  if (typeof value === 'boolean') return Number(value);
  return typeof value === 'string' && value.length < 400 && pattern.test(value) ? Number(value) : undefined;
}

function checkMinimum(value: number): Read<number> {
  if (value >= 0) return value;
  return { msg: 'Input should be greater than or equal to 0', type: 'greater_than_equal' };
}

function checkMaximum(read: Read<number>, maximum: number): Read<number> {
  if (typeof read !== 'number' || read <= maximum) return read;
  return { msg: `Input should be less than or equal to ${maximum}`, type: 'less_than_equal' };
}

function readText(value: unknown): Read<string> {
  if (value === null || value === '') return '';
  if (typeof value !== 'string') return { msg: 'Input should be a valid string', type: 'string_type' };
  if (Buffer.byteLength(value) > MAX_TEXT_BYTES)
    return { msg: `String should have at most ${MAX_TEXT_BYTES} bytes`, type: 'string_too_long' };
  const fault = findTextFault(value);
  return fault === undefined ? value : { msg: `String ${fault}`, type: 'string_type' };
}

function readTime(value: unknown): Read<number> {
  const ms = typeof value === 'string' ? readIsoTime(value) : Number.NaN;
  return Number.isNaN(ms) ? { msg: 'Input should be a valid datetime', type: 'datetime_parsing' } : ms;
}
