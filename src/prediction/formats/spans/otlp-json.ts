/** Reads an OTLP export of spans in JSON. */
import { Failure } from '../../../errors.ts';
import { checkParts } from './export-limits.ts';
import { type Attributes, type AttributeValue, type Span, STATUS_ERROR } from './span.ts';

type Fields = Readonly<Record<string, unknown>>;

export function isOtlpJson(value: unknown): value is Fields {
  return isFields(value) && Array.isArray(value.resourceSpans);
}

/** Throws `invalid` with the path of the wrong field, and `too_large` for too many parts. */
export function* readOtlpJson(request: unknown): Generator<Span> {
  const root = readFields(request, 'request');
  let parts = 0;
  for (const [r, resourceSpans] of readList(root.resourceSpans, 'resourceSpans').entries()) {
    checkParts(++parts);
    const place = `resourceSpans[${r}]`;
    const { resource, scopeSpans } = readFields(resourceSpans, place);
    const attributes =
      resource === undefined
        ? new Map()
        : readAttributes(readFields(resource, `${place}.resource`), `${place}.resource`);
    for (const [s, scope] of readList(scopeSpans, `${place}.scopeSpans`).entries()) {
      checkParts(++parts);
      const at = `${place}.scopeSpans[${s}]`;
      for (const [i, span] of readList(readFields(scope, at).spans, `${at}.spans`).entries()) {
        checkParts(++parts);
        yield readSpan(span, `${at}.spans[${i}]`, attributes);
      }
    }
  }
}

function readSpan(value: unknown, place: string, resource: Attributes): Span {
  const span = readFields(value, place);
  const status = span.status === undefined ? {} : readFields(span.status, `${place}.status`);
  return {
    traceId: readText(span.traceId, `${place}.traceId`),
    spanId: readText(span.spanId, `${place}.spanId`),
    startMs: readInteger(span.startTimeUnixNano ?? 0, `${place}.startTimeUnixNano`) / 1e6,
    isFailed: status.code === STATUS_ERROR || status.code === 'STATUS_CODE_ERROR',
    attributes: readAttributes(span, place),
    resource,
  };
}

function readAttributes(owner: Fields, place: string): Attributes {
  const attributes = new Map<string, AttributeValue>();
  for (const [i, entry] of readList(owner.attributes, `${place}.attributes`).entries()) {
    const at = `${place}.attributes[${i}]`;
    const { key, value } = readFields(entry, at);
    const read = value === undefined ? undefined : readValue(readFields(value, `${at}.value`), `${at}.value`);
    if (read !== undefined) attributes.set(readText(key, `${at}.key`), read);
  }
  return attributes;
}

/** Returns undefined for arrays, maps and bytes: no attribute that is read has such a value. */
function readValue(value: Fields, place: string): AttributeValue | undefined {
  if (value.stringValue !== undefined) return readText(value.stringValue, `${place}.stringValue`);
  if (value.intValue !== undefined) return readInteger(value.intValue, `${place}.intValue`);
  if (typeof value.doubleValue === 'number') return value.doubleValue;
  if (typeof value.boolValue === 'boolean') return value.boolValue;
  return value.doubleValue === undefined ? undefined : Number(value.doubleValue);
}

const INTEGER = /^-?\d{1,20}$/;

function readInteger(value: unknown, place: string): number {
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  if (typeof value === 'string' && INTEGER.test(value)) return Number(value);
  throw new Failure('invalid', `${place} must be an integer`);
}

function readText(value: unknown, place: string): string {
  if (value === undefined) return '';
  if (typeof value !== 'string') throw new Failure('invalid', `${place} must be a string`);
  return value;
}

/** The JSON of proto3 omits an empty list. */
function readList(value: unknown, place: string): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new Failure('invalid', `${place} must be an array`);
  return value;
}

function readFields(value: unknown, place: string): Fields {
  if (!isFields(value)) throw new Failure('invalid', `${place} must be an object`);
  return value;
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
