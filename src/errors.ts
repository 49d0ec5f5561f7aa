/**
 * Defines `Failure` and the closed set of ways to refuse a request, which each edge maps to its own errors. Every edge (HTTP,
 * gRPC, command line) has a total table over it.
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

/** A refusal may carry this beside its text: which field was wrong, how long to wait, and data an edge renders. */
export interface FailureDetails {
  readonly field?: string;
  readonly retryAfterSeconds?: number;
  readonly [name: string]: unknown;
}

/**
 * A refusal. Its message is written for the caller and is safe to show; anything secret belongs in `cause`. Only an
 * `internal` one records where it was made: that takes ten times as long as the rest, and strangers are refused as often
 * as they like.
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

/** A message of `JSON.parse` that ends so quotes the text, which may hold a secret; the others give the position alone. */
const NOT_JSON = ' is not valid JSON';

/** A row was refused because the row that it belongs to is not there any more. */
export function isOrphan(error: unknown): boolean {
  return isFailure(error) && error.details.isMissingParent === true;
}

/** No such file, no rights, a port that is taken: the system's words say it, and a stack would hide them. */
export function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && 'code' in error;
}
