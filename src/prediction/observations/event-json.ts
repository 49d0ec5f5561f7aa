/** Reads reported events in the JSON mapping of proto3. */
import { Failure } from '../../errors.ts';
import {
  readJsonArray,
  readJsonDouble,
  readJsonInt32,
  readJsonObject,
  readJsonString,
  refuseUnknownField,
  toCamelCase,
} from '../../grpc/protobuf/json.ts';
import { fillMetrics } from '../schema/input-fields.ts';
import { refuseEmptyEvent } from './event-codec.ts';
import { createDraft, createInputDraft, type EventDraft, type InputDraft, type TimestampDraft } from './event-draft.ts';

type ReadField<T> = (value: unknown, name: string, into: T) => void;
/** Maps, since their keys come from outside: an object would have `constructor` too. */
type Fields<T> = ReadonlyMap<string, ReadField<T>>;

const int32 =
  <K extends string>(key: K): ReadField<Record<K, number>> =>
  (value, name, into) => {
    into[key] = readJsonInt32(value, name);
  };
const double =
  <K extends string>(key: K): ReadField<Record<K, number>> =>
  (value, name, into) => {
    into[key] = readJsonDouble(value, name);
  };
const text =
  <K extends string>(key: K): ReadField<Record<K, string>> =>
  (value, name, into) => {
    into[key] = readJsonString(value, name);
  };

const READ_KIND = { int32, double } as const;

const INPUT: Fields<InputDraft> = toMap({
  // An input may carry the id that it had in a Predict call; it is ignored here.
  inputId: readJsonInt32,
  podType: text('podType'),
  ...fillMetrics(({ kind, column }) => READ_KIND[kind](column)),
  serverIp: text('serverIp'),
});

const requestId = text('requestId');
const targetModel = text('targetModel');
const outputTokens = int32('outputTokens');
const input: ReadField<EventDraft> = (value, name, draft) => {
  if (value === null) return;
  draft.input = createInputDraft();
  readFields(value, name, { fields: INPUT, into: draft.input });
};
const at: ReadField<EventDraft> = (value, name, draft) => {
  if (value !== null) draft.at = readTimestamp(value, name);
};
const ttftMillis: ReadField<EventDraft> = (value, name, draft) => {
  if (value !== null) draft.ttftMs = readJsonDouble(value, name);
};
const tpotMillis: ReadField<EventDraft> = (value, name, draft) => {
  if (value !== null) draft.tpotMs = readJsonDouble(value, name);
};

interface EventKind {
  readonly kind: EventDraft['kind'];
  readonly fields: Fields<EventDraft>;
}

const EVENTS: ReadonlyMap<string, EventKind> = toMap<EventKind>({
  dispatched: { kind: 'dispatched', fields: toMap({ requestId, targetModel, input, at }) },
  firstToken: { kind: 'first_token', fields: toMap({ requestId, ttftMillis, at }) },
  finished: { kind: 'finished', fields: toMap({ requestId, tpotMillis, outputTokens, at }) },
  observation: {
    kind: 'observation',
    fields: toMap({ requestId, targetModel, input, at, ttftMillis, tpotMillis, outputTokens }),
  },
});

function toMap<T>(values: Readonly<Record<string, T>>): ReadonlyMap<string, T> {
  return new Map(Object.entries(values));
}

/** Reads one `Event`. Throws `invalid` for any other value. */
export function readJsonEvent(value: unknown): EventDraft {
  const members = Object.entries(readJsonObject(value, 'event')).filter(([, member]) => member !== null);
  if (members.length > 1) throw new Failure('invalid', 'event must be one, got several');
  const [key, member] = members[0] ?? refuseEmptyEvent();
  const event = EVENTS.get(toCamelCase(key)) ?? refuseUnknownField(key);
  const draft = createDraft(event.kind);
  readFields(member, key, { fields: event.fields, into: draft });
  return draft;
}

/** Returns the events of a `ReportBatchRequest`, not yet checked. */
export function readJsonBatch(value: unknown): readonly unknown[] {
  const request = readJsonObject(value, 'request');
  for (const key of Object.keys(request)) if (key !== 'events') refuseUnknownField(key);
  return readJsonArray(request.events, 'events');
}

function readFields<T>(value: unknown, name: string, { fields, into }: { fields: Fields<T>; into: T }): void {
  for (const [key, member] of Object.entries(readJsonObject(value, name))) {
    const read = fields.get(toCamelCase(key)) ?? refuseUnknownField(`${name}.${key}`);
    read(member, `${name}.${key}`, into);
  }
}

const RFC_3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$/;

function readTimestamp(value: unknown, name: string): TimestampDraft {
  const ms = typeof value === 'string' && RFC_3339.test(value) ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(ms))
    throw new Failure(
      'invalid',
      `${name} must be a time like "2026-01-31T12:00:00.250Z", got ${JSON.stringify(value)}`,
    );
  const seconds = Math.floor(ms / 1000);
  return { seconds, nanos: (ms - seconds * 1000) * 1_000_000 };
}
