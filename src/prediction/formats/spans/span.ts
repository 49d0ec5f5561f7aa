/** Declares the parts of a span that say how a request went. */

/** A span of a trace, as OTLP carries it in JSON or protobuf: the parts that say how a request went. */
export type AttributeValue = string | number | boolean;
export type Attributes = ReadonlyMap<string, AttributeValue>;

export interface Span {
  /** The ids have hexadecimal digits; both may be empty. */
  readonly traceId: string;
  readonly spanId: string;
  /** Milliseconds since the epoch. */
  readonly startMs: number;
  readonly isFailed: boolean;
  readonly attributes: Attributes;
  /** The attributes of the resource that sent the span. */
  readonly resource: Attributes;
}

/** `status.code` of a span that failed: STATUS_CODE_ERROR. */
export const STATUS_ERROR = 2;
