/**
 * Defines `Failure` and the closed set of reasons to refuse a request, which each edge maps to its own errors. Every edge (HTTP,
 * gRPC, command line) has a table of all of them.
 */
export type FailureCode =
  | 'invalid'
  | 'unauthenticated'
  | 'forbidden'
  | 'not_found'
  | 'conflict'
  | 'too_large'
  | 'too_many'
  | 'unavailable'
  | 'deadline'
  | 'internal';

/** Data of a refusal beside its text: the invalid field, how long to wait, and values that an edge renders. */
export interface FailureDetails {
  readonly field?: string;
  readonly retryAfterSeconds?: number;
  readonly [name: string]: unknown;
}

/**
 * A refusal. Its message is written for the caller and is safe to show; anything secret belongs in `cause`. Only an `internal` one
 * records a stack trace: that takes ten times as long as the rest, and strangers can cause refusals without limit.
 */
export class Failure extends Error {
  readonly code: FailureCode;
  readonly details: FailureDetails;

  constructor(code: FailureCode, message: string, details: FailureDetails = {}, options?: ErrorOptions) {
    const { stackTraceLimit } = Error;
    if (code !== 'internal') Error.stackTraceLimit = 0;
    super(message, options);
    Error.stackTraceLimit = stackTraceLimit;
    this.name = 'Failure';
    this.code = code;
    this.details = details;
  }
}

export function isFailure(error: unknown): error is Failure {
  return error instanceof Failure;
}

/** The text of anything thrown, for logs and summaries. */
export function describeError(error: unknown): string {
  if (error instanceof SyntaxError && error.message.endsWith(NOT_JSON)) return `it${NOT_JSON}`;
  return error instanceof Error ? error.message : String(error);
}

/** A message of `JSON.parse` with this end quotes the text, which may have a secret; the others give only the position. */
const NOT_JSON = ' is not valid JSON';

/** Whether a row was refused because the row that it references is gone. */
export function isOrphan(error: unknown): boolean {
  return isFailure(error) && error.details.isMissingParent === true;
}

/** Errors such as no such file, no permission, a port in use: the system's message explains them, and a stack would hide it. */
export function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && 'code' in error;
}
