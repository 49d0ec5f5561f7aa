/** Makes the record of an attempt in the delivery log, and the last response that the hook shows. */

import type { SendReport } from '../send/send-report.ts';
import type { AttemptRecord } from './attempt-result-store.ts';

const SECRET_HEADER = /token|signature|authorization|cookie|secret|password|api-?key/i;
const REDACTED = '[redacted]';

export interface AttemptDetail {
  readonly request_headers: Readonly<Record<string, string>>;
  readonly response_headers: Readonly<Record<string, string | string[]>>;
  readonly timings_ms: SendReport['timingsMs'];
}

export interface AttemptFacts {
  readonly id: number;
  readonly startedAtMs: number;
  readonly requestHeaders: Readonly<Record<string, string>>;
  readonly report: SendReport;
}

export function recordAttempt({ id, startedAtMs, requestHeaders, report }: AttemptFacts): AttemptRecord {
  const detail: AttemptDetail = {
    request_headers: redactHeaders(requestHeaders),
    response_headers: report.responseHeaders,
    timings_ms: report.timingsMs,
  };
  return {
    id,
    startedAtMs,
    outcome: report.outcome.kind,
    status: report.status,
    reason: report.reason,
    remoteAddress: report.remoteAddress,
    detail: JSON.stringify(detail),
    responseBody: report.responseBody.byteLength === 0 ? null : report.responseBody,
  };
}

/** Redacts values of headers with which a reader of the log could forge a delivery. */
function redactHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  const redacted: Record<string, string> = {};
  for (const name in headers) redacted[name] = isSecret(name) ? REDACTED : (headers[name] ?? '');
  return redacted;
}

/** A cache without a limit, since the few names come from the profiles. */
const isSecretByName = new Map<string, boolean>();

function isSecret(name: string): boolean {
  const known = isSecretByName.get(name);
  if (known !== undefined) return known;
  const found = SECRET_HEADER.test(name);
  isSecretByName.set(name, found);
  return found;
}

/** The body of the response without NUL characters, which no engine stores in a text; without a body, the reason. */
export function describeResponse(report: SendReport): string {
  if (report.status === 0) return report.reason ?? '';
  return decodeText(report.responseBody);
}

const decoder = new TextDecoder();

export function decodeText(bytes: Uint8Array): string {
  return decoder.decode(dropHalfCharacter(bytes)).replaceAll('\0', '\uFFFD');
}

/** Removes an incomplete UTF-8 character from the end of a truncated response. */
function dropHalfCharacter(bytes: Uint8Array): Uint8Array {
  const last = bytes.findLastIndex((byte) => (byte & 0b1100_0000) !== 0b1000_0000);
  const lead = bytes[last] ?? 0;
  const length = lead >= 0b1111_0000 ? 4 : lead >= 0b1110_0000 ? 3 : lead >= 0b1100_0000 ? 2 : 1;
  return last + length > bytes.length ? bytes.subarray(0, last) : bytes;
}
