/** Reads one row of a benchmark's file as a record of a request. */
import { Failure, isFailure } from '../../../errors.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** The fields of `formats/request-log.ts`. */
export interface RequestRecord extends Fields {
  readonly run: string;
  readonly server: string;
  readonly server_ip?: string;
  readonly target_model?: string;
  readonly cached_tokens?: number;
  readonly start_ms: number;
  readonly first_token_ms: number;
  readonly end_ms: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
}

export interface BenchmarkRow {
  readonly line: number;
  /** The position of the row in the file, such as `[1]`, for a file without lines. */
  readonly place?: string;
  /** Undefined for a row that cannot be learned from; `problem` says why. */
  readonly record: RequestRecord | undefined;
  readonly problem?: string;
}

export interface BenchmarkContext {
  /** The name of the run. The requests of one run are the load of each other. */
  readonly run: string;
  /** The server that was measured, as `server_ip` names it; empty if the file names its servers. */
  readonly server: string;
  /** The number of the line; 1 for a whole document. */
  readonly line: number;
}

export interface RowPlace {
  readonly line: number;
  readonly place?: string;
}

/** Returns the row that `read` returns, or the message of the failure that it throws, which must not contain values of the file. */
export function toRow(at: RowPlace, read: () => RequestRecord): BenchmarkRow {
  try {
    return { ...at, record: read() };
  } catch (error) {
    if (!isFailure(error)) throw error;
    return { ...at, record: undefined, problem: error.message };
  }
}

export function refuse(reason: string): Failure {
  return new Failure('invalid', reason);
}

export function readNumber(value: unknown, name: string): number {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  if (typeof number === 'number' && Number.isFinite(number)) return number;
  throw refuse(value === undefined || value === null ? `${name} must be present` : `${name} must be a finite number`);
}

/** Reads a TTFT. Benchmarks write 0 for a request that failed or was not streamed. */
export function readTtft(value: unknown, name: string): number {
  const ttft = readNumber(value, name);
  if (ttft === 0) throw refuse(`${name} must be more than 0: the request failed or was not streamed`);
  if (ttft < 0) throw refuse(`${name} must be more than 0`);
  return ttft;
}

export function readFields(value: unknown, name: string): Fields {
  if (isFields(value)) return value;
  throw refuse(value === undefined || value === null ? `${name} must be present` : `${name} must be an object`);
}

/** Returns a member of an object; empty when it is absent. */
export function readOptionalFields(value: unknown): Fields {
  return isFields(value) ? value : {};
}

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the fields that name the measured server in a record. */
export function nameServer({ run, server }: BenchmarkContext): Pick<RequestRecord, 'run' | 'server' | 'server_ip'> {
  return { run, server, server_ip: server };
}
