/** Declares the parts of a span from which a request is read. */

/** The parts that are read of a span in OTLP, from JSON or protobuf. */
export type AttributeValue = string | number | boolean;
export type Attributes = ReadonlyMap<string, AttributeValue>;

export interface Span {
  /** The ids are hexadecimal; both may be empty. */
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
