import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { encodeMessage } from '../../../test/support/grpc/proto-messages.ts';
import { EVENTS, EventMessage } from '../../../test/support/prediction/observation-events.ts';
import { isFailure } from '../../errors.ts';
import { decodeEvent } from './event-codec.ts';
import { readJsonEvent } from './event-json.ts';

test('events that were damaged are accepted or refused as protobufjs does', () => {
  const damage = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(fc.constantFrom(...EVENTS), damage, (event, damages) => {
      const bytes = encodeMessage(EventMessage, event);
      for (const [position, value] of damages) bytes[position % bytes.length] = value;
      assert.deepEqual(
        attempt(() => decodeEvent(bytes)),
        attempt(() => readIndependently(bytes)),
      );
    }),
    { numRuns: 3000 },
  );
});

test('an event of two halves is merged, and of several kinds the last counts', () => {
  const parts = [
    { dispatched: { requestId: 'r', input: { inputTokenLength: 5 } } },
    { dispatched: { targetModel: 'm', input: { kvCacheUsage: 0.5 } } },
  ].map((event) => encodeMessage(EventMessage, event));
  const last = encodeMessage(EventMessage, EVENTS[1]!);
  for (const bytes of [Buffer.concat(parts), Buffer.concat([...parts, last]), Buffer.concat([last, ...parts])])
    assert.deepEqual(decodeEvent(bytes), readIndependently(bytes));
});

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (isFailure(error)) assert.equal(error.code, 'invalid');
    return undefined;
  }
}

/** What protobufjs reads, brought into the shape of a draft through the JSON reader's names. */
function readIndependently(bytes: Uint8Array): unknown {
  const message = EventMessage.decode(bytes);
  const event = EventMessage.toObject(message, { longs: Number, oneofs: true }) as Record<
    string,
    Record<string, unknown>
  >;
  const kind = event.event as unknown as string | undefined;
  if (kind === undefined) throw new Error('no event');
  const { at: time, ttftMillis, tpotMillis, ...rest } = event[kind]!;
  const draft = readJsonEvent({ [kind]: JSON.parse(JSON.stringify(rest, encodeNumber)) });
  draft.at = time === undefined ? undefined : { seconds: 0, nanos: 0, ...time };
  draft.ttftMs = (ttftMillis as number | undefined) ?? (kind === 'firstToken' ? 0 : undefined);
  draft.tpotMs = tpotMillis as number | undefined;
  return draft;
}

/** JSON has no -0, NaN or infinities. */
function encodeNumber(_key: string, value: unknown): unknown {
  if (Object.is(value, -0)) return '-0';
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;
}
