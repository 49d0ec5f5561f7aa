/** Maps errors to gRPC status codes and messages, and decides which are faults of the service. */
import { type FailureCode, isFailure } from '../../errors.ts';

/** A refusal with a status that only gRPC has, for example UNIMPLEMENTED. Its message is safe to show. It records no stack. */
export class StatusError extends Error {
  readonly status: GrpcStatusName;

  constructor(status: GrpcStatusName, message: string) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message);
    Error.stackTraceLimit = stackTraceLimit;
    this.status = status;
  }
}

/** How a call ended: the gRPC status and message. */
export interface GrpcStatus {
  readonly code: number;
  readonly details: string;
  /** For `grpc-retry-pushback-ms`: when the caller may try again. */
  readonly retryAfterMs?: number;
}

const NAMES = [
  'OK',
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
  'UNAUTHENTICATED',
] as const;

export type GrpcStatusName = (typeof NAMES)[number];

/** A new failure code does not compile until it has a gRPC status here. */
const STATUS_OF: Record<FailureCode, GrpcStatusName> = {
  invalid: 'INVALID_ARGUMENT',
  unauthenticated: 'UNAUTHENTICATED',
  forbidden: 'PERMISSION_DENIED',
  not_found: 'NOT_FOUND',
  conflict: 'ABORTED',
  too_large: 'RESOURCE_EXHAUSTED',
  too_many: 'RESOURCE_EXHAUSTED',
  unavailable: 'UNAVAILABLE',
  deadline: 'DEADLINE_EXCEEDED',
  internal: 'INTERNAL',
};

/** Status texts travel in a header, and some clients refuse headers above 8 KB. */
const MAX_DETAILS_LENGTH = 1000;
/** The most characters of a value that a status repeats. HPACK lets a client send a long value thousands of times, in a byte each. */
export const MAX_SHOWN_LENGTH = 100;

export function statusNameOf(code: number): GrpcStatusName {
  return NAMES[code] ?? 'UNKNOWN';
}

/** The number of a status on the wire. */
export function statusCodeOf(name: GrpcStatusName): number {
  return NAMES.indexOf(name);
}

/** The name of the status of a failure, as it is also written in JSON errors. */
export function statusNameOfFailure(code: FailureCode): GrpcStatusName {
  return STATUS_OF[code];
}

/** Returns what the caller may see of an error: the text of a refusal, or the trace id of any other error. */
export function toStatus(error: unknown, traceId: string): GrpcStatus {
  if (error instanceof StatusError) return { code: statusCodeOf(error.status), details: limitDetails(error.message) };
  if (!isFailure(error) || error.code === 'internal')
    return { code: statusCodeOf('INTERNAL'), details: `Internal error, trace id ${traceId}` };
  const { retryAfterSeconds } = error.details;
  return {
    code: statusCodeOf(STATUS_OF[error.code]),
    details: limitDetails(error.message),
    ...(retryAfterSeconds === undefined ? {} : { retryAfterMs: Math.ceil(retryAfterSeconds * 1000) }),
  };
}

function limitDetails(message: string): string {
  return message.slice(0, MAX_DETAILS_LENGTH).toWellFormed();
}

const OUR_FAULTS: readonly GrpcStatusName[] = [
  'UNKNOWN',
  'DEADLINE_EXCEEDED',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
];

/** The codes that OpenTelemetry's conventions count as errors of a server. */
export function isOurFault(code: number): boolean {
  return OUR_FAULTS.includes(statusNameOf(code));
}

/** True for errors that the caller caused. All others are faults of the service, and are logged. */
export function isExpected(error: unknown): boolean {
  return error instanceof StatusError || (isFailure(error) && error.code !== 'internal');
}
