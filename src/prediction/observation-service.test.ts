import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import fc from 'fast-check';
import { connectRaw, type RawClient, serialize } from '../../test/support/grpc-client.ts';
import { decodeMessage, encodeMessage, messageType } from '../../test/support/proto-messages.ts';
import { Failure, isFailure } from '../errors.ts';
import { type GrpcServer, openGrpcServer } from '../grpc/server.ts';
import { createHttpApp } from '../http/http-app.ts';
import { type HttpServer, listenHttp } from '../http/http-server.ts';
import { createLog } from '../telemetry/log.ts';
import { createMetrics } from '../telemetry/metrics.ts';
import { realWorld } from '../world.ts';
import { decodeEvent } from './event-codec.ts';
import { readJsonEvent } from './event-json.ts';
import type { ObservationEvent, ObservationSink, ReportResult } from './observation-event.ts';
import { createObservationRoutes } from './observation-routes.ts';
import { createObservationService } from './observation-service.ts';

const Event = messageType('observation.v1.Event');
const Batch = messageType('observation.v1.ReportBatchRequest');
const Response = messageType('observation.v1.ReportResponse');

interface Report {
  accepted: number;
  refused: number;
  refusals: { index: number; requestId: string; reason: string }[];
}

const NOW_MS = Date.UTC(2026, 0, 2, 3, 4, 5);

/** What the sink does in one test; everything it got stays in `reported`. */
let respond: (events: readonly ObservationEvent[]) => Promise<ReportResult>;
let reported: ObservationEvent[];
const takeAll = (events: readonly ObservationEvent[]) => Promise.resolve({ accepted: events.length, refusals: [] });
const sink: ObservationSink = {
  report: (events) => {
    reported.push(...events);
    return respond(events);
  },
};
const service = createObservationService({ sink, world: { nowMs: () => NOW_MS } });
const log = createLog('silent');

let grpc: GrpcServer;
let client: RawClient;
let http: HttpServer;

before(async () => {
  const listen = { host: '127.0.0.1', port: 0 };
  const metrics = createMetrics();
  grpc = await openGrpcServer({
    ...listen,
    services: [service.grpc],
    maxMessageBytes: 4e6,
    log,
    metrics,
    world: realWorld,
  });
  client = connectRaw(`127.0.0.1:${grpc.port}`);
  http = await listenHttp(listen);
  const routes = createObservationRoutes(service, { mode: 'auto', verifyToken: () => Promise.resolve(undefined) });
  const mounts = [{ path: '/observation.v1.ObservationService', errors: 'rpc' as const, routes }];
  const checkReady = async () => {};
  http.serve(createHttpApp({ mounts, log, metrics, world: realWorld, maxBodyBytes: 1e7, checkReady }));
});

after(async () => {
  client[Symbol.dispose]();
  await Promise.all([grpc.drain(1000), http.drain(1000)]);
});

function start(answer: typeof respond = takeAll): void {
  respond = answer;
  reported = [];
}

const BATCH_PATH = '/observation.v1.ObservationService/ReportBatch';
const STREAM_PATH = '/observation.v1.ObservationService/Report';

async function reportBatch(events: object[]): Promise<Report> {
  return decodeMessage(Response, await client.unary(BATCH_PATH, encodeMessage(Batch, { events })));
}

async function reportStream(events: object[]): Promise<Report> {
  const messages = events.map((event) => encodeMessage(Event, event));
  return decodeMessage(Response, await client.clientStream(STREAM_PATH, messages));
}

async function reportLines(lines: string[]): Promise<Report> {
  const headers = { 'content-type': 'application/jsonl' };
  const response = await fetch(http.url + BATCH_PATH, { method: 'POST', headers, body: lines.join('\n') });
  assert.equal(response.status, 200);
  return (await response.json()) as Report;
}

const input = {
  podType: 'decode',
  inputTokenLength: 1000,
  prefixCacheScore: 0.5,
  numRequestWaiting: 1,
  numRequestRunning: 2,
  kvCacheUsage: 0.25,
  inflightTokens: 3000,
  hbmUtilization: 0.7,
  aiCoreUtilization: 0.6,
  bandwidthUtilization: 0.4,
  serverIp: '10.0.0.1',
};
const at = { seconds: 1_700_000_000, nanos: 250_000_000 };
const atMs = 1_700_000_000_250;

const EVENTS = [
  { dispatched: { requestId: 'r1', targetModel: 'm', input: { inputId: 3, ...input }, at } },
  { firstToken: { requestId: 'r1', ttftMillis: 120.5, at } },
  { finished: { requestId: 'r1', tpotMillis: 9.5, outputTokens: 40, at } },
  { finished: { requestId: 'r2', outputTokens: 1 } },
  { observation: { targetModel: 'm', input, at, ttftMillis: 88 } },
  { observation: { requestId: 'r3', targetModel: 'm', input, tpotMillis: 7, outputTokens: 5 } },
];
const EXPECTED: ObservationEvent[] = [
  { kind: 'dispatched', requestId: 'r1', targetModel: 'm', input, atMs },
  { kind: 'first_token', requestId: 'r1', ttftMs: 120.5, atMs },
  { kind: 'finished', requestId: 'r1', tpotMs: 9.5, outputTokens: 40, atMs },
  { kind: 'finished', requestId: 'r2', tpotMs: undefined, outputTokens: 1, atMs: NOW_MS },
  {
    kind: 'observation',
    requestId: '',
    targetModel: 'm',
    input,
    atMs,
    ttftMs: 88,
    tpotMs: undefined,
    outputTokens: 0,
  },
  {
    kind: 'observation',
    requestId: 'r3',
    targetModel: 'm',
    input,
    atMs: NOW_MS,
    ttftMs: undefined,
    tpotMs: 7,
    outputTokens: 5,
  },
];
const TAKEN: Report = { accepted: EXPECTED.length, refused: 0, refusals: [] };

test('a stream of events reaches the sink in its order and is answered once', async () => {
  start();
  assert.deepEqual(await reportStream(EVENTS), TAKEN);
  assert.deepEqual(reported, EXPECTED);
});

test('a batch of events reaches the sink in its order', async () => {
  start();
  assert.deepEqual(await reportBatch(EVENTS), TAKEN);
  assert.deepEqual(reported, EXPECTED);
});

/** The JSON mapping writes a time as text. */
function toJson(event: object): object {
  return JSON.parse(JSON.stringify(event).replaceAll(JSON.stringify(at), '"2023-11-14T22:13:20.250Z"'));
}

test('JSON lines and a JSON batch say the same over HTTP', async () => {
  start();
  assert.deepEqual(await reportLines([...EVENTS.map((event) => JSON.stringify(toJson(event))), '']), TAKEN);
  assert.deepEqual(reported, EXPECTED);
  start();
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ events: EVENTS.map(toJson) });
  const response = await fetch(http.url + BATCH_PATH, { method: 'POST', headers, body });
  assert.deepEqual(await response.json(), TAKEN);
  assert.deepEqual(reported, EXPECTED);
});

test('the bytes of a batch may be posted too', async () => {
  start();
  const headers = { 'content-type': 'application/proto' };
  const body = encodeMessage(Batch, { events: EVENTS });
  const response = await fetch(http.url + BATCH_PATH, { method: 'POST', headers, body });
  assert.deepEqual(decodeMessage(Response, new Uint8Array(await response.arrayBuffer())), TAKEN);
});

const dispatched = { requestId: 'r', targetModel: 'm', input };
const whole = { targetModel: 'm', input, ttftMillis: 1 };
const impossible: [event: object, reason: RegExp][] = [
  [{}, /^event must be one of dispatched, first_token, finished, observation$/],
  [{ dispatched: { ...dispatched, requestId: '' } }, /^request_id must not be empty$/],
  [{ dispatched: { ...dispatched, requestId: 'x'.repeat(257) } }, /^request_id must have at most 256 bytes, got 257$/],
  [{ dispatched: { ...dispatched, targetModel: '' } }, /^target_model must not be empty$/],
  [{ dispatched: { requestId: 'r', targetModel: 'm' } }, /^input must be given$/],
  [
    { dispatched: { ...dispatched, input: { ...input, kvCacheUsage: -0.5 } } },
    /^input\.kv_cache_usage must be a number from 0 on, got -0\.5$/,
  ],
  [{ dispatched: { ...dispatched, input: { ...input, inflightTokens: -1 } } }, /^input\.inflight_tokens must/],
  [{ dispatched: { ...dispatched, at: { seconds: 4_000_000_000 } } }, /^at must be after 1970 and not more than a day/],
  [{ dispatched: { ...dispatched, at: { seconds: -1 } } }, /^at must be after 1970/],
  [{ firstToken: { requestId: 'r', ttftMillis: -3 } }, /^ttft_millis must be more than 0 and at most a day, got -3$/],
  [{ firstToken: { requestId: 'r', ttftMillis: 86_400_001 } }, /^ttft_millis must be more than 0 and at most a day/],
  [{ finished: { requestId: 'r', tpotMillis: 0 } }, /^tpot_millis must be more than 0/],
  [{ finished: { requestId: 'r', outputTokens: -1 } }, /^output_tokens must not be negative, got -1$/],
  [{ observation: { targetModel: 'm', input } }, /^ttft_millis or tpot_millis must be given$/],
  [{ observation: { ...whole, ttftMillis: 0 } }, /^ttft_millis must be more than 0/],
];

for (const [how, report] of [
  ['a stream', reportStream],
  ['a batch', reportBatch],
  ['JSON lines', (events: object[]) => reportLines(events.map((event) => JSON.stringify(toLine(event))))],
] as const)
  test(`impossible events of ${how} are counted and named, the others are taken`, async () => {
    start();
    const events = impossible.flatMap(([event]) => [event, EVENTS[1]!]);
    const report_ = await report(events);
    assert.equal(report_.accepted, impossible.length);
    assert.equal(report_.refused, impossible.length);
    assert.equal(reported.length, impossible.length);
    for (const [position, [, reason]] of impossible.entries()) {
      const refusal = report_.refusals[position];
      assert.equal(refusal?.index, position * 2);
      assert.match(refusal.reason, reason);
    }
  });

function toLine(event: object): object {
  return JSON.parse(
    JSON.stringify(toJson(event)).replace(/\{"seconds":(-?\d+)\}/, (_, seconds) =>
      JSON.stringify(new Date(Number(seconds) * 1000).toISOString()),
    ),
  );
}

test('bytes that are no event spoil only themselves', async () => {
  start();
  const good = encodeMessage(Event, EVENTS[1]!);
  const bad = Buffer.from('0a05ff', 'hex');
  const stream = decodeMessage<Report>(Response, await client.clientStream(STREAM_PATH, [good, bad, good]));
  assert.deepEqual(stream, {
    accepted: 2,
    refused: 1,
    refusals: [{ index: 1, requestId: '', reason: 'it is cut off' }],
  });
  const batch = Buffer.concat(
    [good, bad, good].map((event) => Buffer.concat([Buffer.from([0x0a, event.length]), event])),
  );
  assert.deepEqual(decodeMessage<Report>(Response, await client.unary(BATCH_PATH, batch)), stream);
});

test('lines that are no JSON, have unknown fields or no time of the format are named', async () => {
  start();
  const report = await reportLines([
    '{',
    '{"finishd":{}}',
    '{"finished":{"requestId":"r","tokens":3}}',
    '{"finished":{"requestId":"r","at":"yesterday"}}',
    '{"finished":{"requestId":"r"},"firstToken":{"requestId":"r"}}',
  ]);
  assert.deepEqual(
    report.refusals.map(({ reason }) => reason),
    [
      'the line must be JSON',
      'there is no field "finishd"',
      'there is no field "finished.tokens"',
      'finished.at must be a time like "2026-01-31T12:00:00.250Z", got "yesterday"',
      'event must be one, got several',
    ],
  );
});

test('what the sink refuses is answered under the position in the report, in order with the rest', async () => {
  start((events) => {
    const refusals = events.flatMap((event, index) =>
      event.requestId === 'unknown' ? [{ index, reason: 'no such request was dispatched' }] : [],
    );
    return Promise.resolve({ accepted: events.length - refusals.length, refusals });
  });
  const late = { firstToken: { requestId: 'unknown', ttftMillis: 1 } };
  const report = await reportBatch([EVENTS[1]!, late, {}, EVENTS[1]!, late]);
  assert.equal(report.accepted, 2);
  assert.deepEqual(
    report.refusals.map(({ index, requestId }) => [index, requestId]),
    [
      [1, 'unknown'],
      [2, ''],
      [4, 'unknown'],
    ],
  );
});

test('only the first 100 refusals are named, all are counted', async () => {
  start();
  const report = await reportBatch(Array.from({ length: 450 }, () => ({})));
  assert.equal(report.refused, 450);
  assert.deepEqual(
    report.refusals.map(({ index }) => index),
    Array.from({ length: 100 }, (_, index) => index),
  );
});

test('more than 10,000 events in a batch are INVALID_ARGUMENT with the limit', async () => {
  start();
  await assert.rejects(reportBatch(Array.from({ length: 10_001 }, () => ({}))), {
    code: status.INVALID_ARGUMENT,
    details: 'Cannot report: events must be at most 10,000 in a batch, got more',
  });
});

test('the answer waits until the sink has made every event durable', async () => {
  const durable = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  start(async (events) => {
    asked.resolve();
    await durable.promise;
    return takeAll(events);
  });
  let answered = false;
  const answer = reportStream(EVENTS).then((report) => {
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
  start(async (events) => {
    calls += 1;
    largest.events = Math.max(largest.events, events.length);
    if (calls === 1) await released.promise;
    return takeAll(events);
  });
  let pulled = 0;
  const message = encodeMessage(Event, EVENTS[1]!);
  const many = async function* (): AsyncGenerator<Uint8Array> {
    for (let index = 0; index < 5000; index++) {
      pulled += 1;
      yield message;
    }
  };
  const method = service.grpc.methods.find(({ name }) => name === 'Report');
  assert.ok(method?.kind === 'client-stream');
  const answer = method.handle(many(), {} as never);
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  assert.ok(pulled < 1500, `pulled ${pulled} while the sink was busy`);
  released.resolve();
  assert.equal(decodeMessage<Report>(Response, await answer).accepted, 5000);
  assert.ok(largest.events <= 512);
});

test('an event on an open stream reaches the sink without waiting for more', async () => {
  const arrived = Promise.withResolvers<readonly ObservationEvent[]>();
  start((events) => {
    arrived.resolve(events);
    return takeAll(events);
  });
  const answer = Promise.withResolvers<Buffer>();
  const call = client.client.makeClientStreamRequest(
    STREAM_PATH,
    serialize,
    (bytes) => bytes,
    (error, bytes) => (error === null && bytes !== undefined ? answer.resolve(bytes) : answer.reject(error)),
  );
  call.write(encodeMessage(Event, EVENTS[1]!));
  assert.deepEqual(await arrived.promise, [EXPECTED[1]]);
  call.end();
  assert.equal(decodeMessage<Report>(Response, await answer.promise).accepted, 1);
});

test('a sink that fails fails the report, with its refusal or as INTERNAL', async () => {
  start(() => Promise.reject(new Failure('unavailable', 'The store is away')));
  await assert.rejects(reportBatch(EVENTS), { code: status.UNAVAILABLE, details: 'The store is away' });
  start(() => Promise.reject(new Error('secret')));
  await assert.rejects(reportStream(EVENTS), (error: { code: number; details: string }) => {
    assert.equal(error.code, status.INTERNAL);
    return !error.details.includes('secret');
  });
});

test('events that were damaged are accepted or refused as protobufjs does', () => {
  const damage = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(fc.constantFrom(...EVENTS), damage, (event, damages) => {
      const bytes = encodeMessage(Event, event);
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
  ].map((event) => encodeMessage(Event, event));
  const last = encodeMessage(Event, EVENTS[1]!);
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
  const message = Event.decode(bytes);
  const event = Event.toObject(message, { longs: Number, oneofs: true }) as Record<string, Record<string, unknown>>;
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
