/** Declares a bridge, which accepts webhooks of another code host, and checks their HMAC signatures. */
import { createHmac } from 'node:crypto';
import type { EventInput } from '../events/event.ts';
import { parseTime } from '../events/event-limits.ts';
import { isSameSignature } from '../profiles/signature.ts';

/** Reads a header, whatever its case. */
export type ReadHeader = (name: string) => string | undefined;

export interface SignedRequest {
  readonly header: ReadHeader;
  readonly body: Buffer;
  readonly nowMs: number;
}

/** Recognises, verifies and translates the webhooks of one code host. */
export interface Bridge {
  /** Whether these are the headers of that host. */
  recognises(header: ReadHeader): boolean;
  /** Verifies the signature by the scheme of that host, over the bytes as received. */
  verifies(secret: Buffer, request: SignedRequest): boolean;
  /** The idempotency key of the incoming webhook, so that a repeated one publishes no second event. */
  deliveryId(header: ReadHeader): string | undefined;
  /** Undefined for an event of a kind that hooks here cannot subscribe to. */
  translate(header: ReadHeader, payload: Json): EventInput | undefined;
}

/** An unchecked JSON object; the event's schema checks what is read from it. */
// biome-ignore lint/suspicious/noExplicitAny: foreign payloads have no type, and every field may be absent
export type Json = any;

export function verifyHexHmac(secret: Buffer, body: Buffer, signature: string | undefined): boolean {
  const expected = createHmac('sha256', secret).update(body).digest('hex');
  return isSameSignature(Buffer.from(expected), Buffer.from((signature ?? '').toLowerCase()));
}

/** ISO 8601 of a time in any of the forms that hosts send, such as `2026-03-01 10:28:03 UTC`. */
export function toTime(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  if (/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(value)) return value;
  return parseTime(value);
}

/** Leaves out what is absent, so that the schema's defaults apply. */
export function compact<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined && field !== null)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}
