import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { serialize } from '../../../test/support/grpc/grpc-client.ts';
import { encodeMessage } from '../../../test/support/grpc/proto-messages.ts';
import { EVENTS, EventMessage, EXPECTED, NOW_MS, toJson } from '../../../test/support/prediction/observation-events.ts';
import {
  BatchMessage,
  decodeReport,
  type Report,
  STREAM_PATH,
  startObservationServer,
  takeAll,
} from '../../../test/support/prediction/observation-server.ts';
import { Failure } from '../../errors.ts';
import type { ObservationEvent } from '../schema/observation-event.ts';

const server = await startObservationServer();
after(() => server[Symbol.asyncDispose]());

const TAKEN: Report = { accepted: EXPECTED.length, refused: 0, refusals: [] };

test('a stream of events reaches the sink in its order and is answered once', async () => {
  server.listenWith();
  assert.deepEqual(await server.reportStream(EVENTS), TAKEN);
  assert.deepEqual(server.reported(), EXPECTED);
});

test('a batch of events reaches the sink in its order', async () => {
  server.listenWith();
  assert.deepEqual(await server.reportBatch(EVENTS), TAKEN);
  assert.deepEqual(server.reported(), EXPECTED);
});

test('JSON lines and a JSON batch say the same over HTTP', async () => {
  server.listenWith();
  assert.deepEqual(await server.reportLines([...EVENTS.map((event) => JSON.stringify(toJson(event))), '']), TAKEN);
  assert.deepEqual(server.reported(), EXPECTED);
  server.listenWith();
  const response = await server.postBatch(JSON.stringify({ events: EVENTS.map(toJson) }), 'application/json');
  assert.deepEqual(await response.json(), TAKEN);
  assert.deepEqual(server.reported(), EXPECTED);
});

test('whole observations of a batch that is dated ahead move back together, the latest to now', async () => {
  const whole = (aheadMs: number) => ({
    observation: { ...EVENTS[4]!.observation, at: { seconds: (NOW_MS + aheadMs) / 1000, nanos: 0 } },
  });
  const events = [whole(-60_000), EVENTS[5]!, whole(600_000), whole(540_000), whole(90_000_000)];
  server.listenWith();
  assert.equal((await server.reportBatch(events)).refused, 1);
  const behindMs = server.reported().map(({ atMs }) => NOW_MS - atMs);
  assert.deepEqual(behindMs, [660_000, 0, 0, 60_000]);
  const toLine = (event: object) =>
    JSON.stringify(event).replace(/\{"seconds":(\d+),"nanos":0\}/, (_, seconds) =>
      JSON.stringify(new Date(1000 * Number(seconds)).toISOString()),
    );
  server.listenWith();
  await server.reportLines(['{', ...events.map(toLine)]);
  assert.deepEqual(
    server.reported().map(({ atMs }) => NOW_MS - atMs),
    behindMs,
  );
});

test('the bytes of a batch may be posted too', async () => {
  server.listenWith();
  const response = await server.postBatch(encodeMessage(BatchMessage, { events: EVENTS }), 'application/proto');
  assert.deepEqual(decodeReport(new Uint8Array(await response.arrayBuffer())), TAKEN);
});

test('the answer waits until the sink has made every event durable', async () => {
  const durable = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  server.listenWith(async (events) => {
    asked.resolve();
    await durable.promise;
    return takeAll(events);
  });
  let answered = false;
  const answer = server.reportStream(EVENTS).then((report) => {
    answered = true;
    return report;
  });
  await asked.promise;
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(answered, false);
  durable.resolve();
  assert.equal((await answer).accepted, EVENTS.length);
});

test('a slow sink holds a stream back instead of letting it pile up', async () => {
  const largest = { events: 0 };
  const released = Promise.withResolvers<void>();
  let calls = 0;
  server.listenWith(async (events) => {
    calls += 1;
    largest.events = Math.max(largest.events, events.length);
    if (calls === 1) await released.promise;
    return takeAll(events);
  });
  const message = encodeMessage(EventMessage, EVENTS[1]!);
  const method = server.service.grpc.methods.find(({ name }) => name === 'Report');
  assert.ok(method?.kind === 'client-stream');
  let taken = 0;
  const isFull = Promise.withResolvers<void>();
  const isTaken = Promise.withResolvers<void>();
  const takeAllMessages = (): void => {
    while (taken < 5000 && collector.reserve()) {
      collector.take(message);
      taken += 1;
    }
    (taken < 5000 ? isFull : isTaken).resolve();
  };
  const collector = method.open({} as never, takeAllMessages);
  takeAllMessages();
  await isFull.promise;
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  assert.ok(taken < 1500, `took ${taken} while the sink was busy`);
  released.resolve();
  await isTaken.promise;
  assert.equal(decodeReport(await collector.finish()).accepted, 5000);
  collector.close();
  assert.ok(largest.events <= 512);
});

test('an event on an open stream reaches the sink without waiting for more', async () => {
  const arrived = Promise.withResolvers<readonly ObservationEvent[]>();
  server.listenWith((events) => {
    arrived.resolve(events);
    return takeAll(events);
  });
  const answer = Promise.withResolvers<Buffer>();
  const call = server.client.client.makeClientStreamRequest(
    STREAM_PATH,
    serialize,
    (bytes) => bytes,
    (error, bytes) => (error === null && bytes !== undefined ? answer.resolve(bytes) : answer.reject(error)),
  );
  call.write(encodeMessage(EventMessage, EVENTS[1]!));
  assert.deepEqual(await arrived.promise, [EXPECTED[1]]);
  call.end();
  assert.equal(decodeReport(await answer.promise).accepted, 1);
});

test('a sink that fails fails the report, with its refusal or as INTERNAL', async () => {
  server.listenWith(() => Promise.reject(new Failure('unavailable', 'The store is away')));
  await assert.rejects(server.reportBatch(EVENTS), { code: status.UNAVAILABLE, details: 'The store is away' });
  server.listenWith(() => Promise.reject(new Error('secret')));
  await assert.rejects(server.reportStream(EVENTS), (error: { code: number; details: string }) => {
    assert.equal(error.code, status.INTERNAL);
    return !error.details.includes('secret');
  });
});
