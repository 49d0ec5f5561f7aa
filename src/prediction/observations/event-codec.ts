/** Decodes the bytes of reported events, and encodes the answer to them. */
import { Failure } from '../../errors.ts';
import { WireReader } from '../../grpc/protobuf/wire-reader.ts';
import { WireWriter } from '../../grpc/protobuf/wire-writer.ts';
import { METRICS } from '../schema/input-fields.ts';
import { createDraft, createInputDraft, type EventDraft, type InputDraft, type TimestampDraft } from './event-draft.ts';
import type { ReportSummary } from './event-intake.ts';

type ReadField<T> = (reader: WireReader, into: T) => void;
type Fields<T> = Readonly<Record<number, ReadField<T>>>;

const int32 =
  <K extends string>(key: K): ReadField<Record<K, number>> =>
  (reader, into) => {
    into[key] = reader.readInt32();
  };
const double =
  <K extends string>(key: K): ReadField<Record<K, number>> =>
  (reader, into) => {
    into[key] = reader.readDouble();
  };
const text =
  <K extends string>(key: K): ReadField<Record<K, string>> =>
  (reader, into) => {
    into[key] = reader.readString();
  };

const WIRE_TYPE = { int32: 0, double: 1 } as const;
const READ_KIND = { int32, double } as const;

/** Each by its tag: field number << 3 | wire type. */
const INPUT: Fields<InputDraft> = {
  18: text('podType'),
  98: text('serverIp'),
  ...Object.fromEntries(
    METRICS.map(({ number, kind, column }) => [(number << 3) | WIRE_TYPE[kind], READ_KIND[kind](column)]),
  ),
};

const TIMESTAMP: Fields<TimestampDraft> = {
  8: (reader, at) => {
    at.seconds = reader.readInt64();
  },
  16: int32('nanos'),
};

const readRequestId = text('requestId');
const readTargetModel = text('targetModel');
const readTokens = int32('outputTokens');
const readTtft: ReadField<EventDraft> = (reader, draft) => {
  draft.ttftMs = reader.readDouble();
};
const readTpot: ReadField<EventDraft> = (reader, draft) => {
  draft.tpotMs = reader.readDouble();
};

/** A repeated message is merged with the first one, as protobuf requires. */
const readInput: ReadField<EventDraft> = (reader, draft) => {
  draft.input ??= createInputDraft();
  readFields(reader, INPUT, draft.input);
};
const readAt: ReadField<EventDraft> = (reader, draft) => {
  draft.at ??= { seconds: 0, nanos: 0 };
  readFields(reader, TIMESTAMP, draft.at);
};

const EVENTS: Readonly<Record<number, { kind: EventDraft['kind']; fields: Fields<EventDraft> }>> = {
  10: { kind: 'dispatched', fields: { 10: readRequestId, 18: readTargetModel, 26: readInput, 34: readAt } },
  18: { kind: 'first_token', fields: { 10: readRequestId, 17: readTtft, 26: readAt } },
  26: { kind: 'finished', fields: { 10: readRequestId, 17: readTpot, 24: readTokens, 34: readAt } },
  34: {
    kind: 'observation',
    fields: {
      10: readRequestId,
      18: readTargetModel,
      26: readInput,
      34: readAt,
      41: readTtft,
      49: readTpot,
      56: readTokens,
    },
  },
};

/** Decodes the bytes of one `Event`. Throws `invalid` for other bytes. */
export function decodeEvent(bytes: Uint8Array): EventDraft {
  const reader = new WireReader(bytes);
  let draft: EventDraft | undefined;
  while (reader.hasMore()) {
    const tag = reader.readTag();
    const event = EVENTS[tag];
    if (event === undefined) {
      reader.skip(tag);
      continue;
    }
    // The last member of a oneof wins; a repeated one is merged.
    if (draft?.kind !== event.kind) draft = withDefaults(createDraft(event.kind));
    readFields(reader, event.fields, draft);
  }
  return draft ?? refuseEmptyEvent();
}

/** Proto3 cannot tell an absent `ttft_millis` of FirstToken from 0; both are refused. */
function withDefaults(draft: EventDraft): EventDraft {
  if (draft.kind === 'first_token') draft.ttftMs = 0;
  return draft;
}

export function refuseEmptyEvent(): never {
  throw new Failure('invalid', 'event must be one of dispatched, first_token, finished, observation');
}

/** Returns the bytes of each event of a `ReportBatchRequest`. Each is decoded alone, so that a damaged event does not affect others. */
export function splitBatch(bytes: Uint8Array, maxEvents: number): readonly Uint8Array[] {
  const reader = new WireReader(bytes);
  const events: Uint8Array[] = [];
  // One event too many is enough to refuse the batch: 4 MiB hold two million empty ones.
  while (reader.hasMore() && events.length <= maxEvents) {
    const tag = reader.readTag();
    if (tag !== 0x0a) {
      reader.skip(tag);
      continue;
    }
    const length = reader.readLength();
    events.push(reader.bytes.subarray(reader.position, reader.position + length));
    reader.position += length;
  }
  return events;
}

/** Encodes a `ReportResponse`. */
export function encodeReportResponse({ accepted, refused, refusals }: ReportSummary): Uint8Array {
  const response = new WireWriter().count(1, accepted).count(2, refused);
  for (const { index, requestId, reason } of refusals)
    response.message(3, new WireWriter().count(1, index).string(2, requestId).string(3, reason));
  return response.finish();
}

function readFields<T>(reader: WireReader, fields: Fields<T>, into: T): void {
  reader.readMessage((inner) => {
    while (inner.hasMore()) {
      const tag = inner.readTag();
      const read = fields[tag];
      if (read === undefined) inner.skip(tag);
      else read(inner, into);
    }
  });
}
