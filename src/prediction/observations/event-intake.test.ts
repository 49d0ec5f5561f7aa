import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { encodeMessage } from '../../../test/support/grpc/proto-messages.ts';
import { EVENTS, EventMessage, input, toJson } from '../../../test/support/prediction/observation-events.ts';
import {
  BATCH_PATH,
  decodeReport,
  STREAM_PATH,
  startObservationServer,
} from '../../../test/support/prediction/observation-server.ts';

const server = await startObservationServer();
after(() => server[Symbol.asyncDispose]());

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
  [
    { dispatched: { ...dispatched, at: { seconds: 4_000_000_000 } } },
    /^at must not be before 1970 or more than a day ahead/,
  ],
  [{ dispatched: { ...dispatched, at: { seconds: -1 } } }, /^at must not be before 1970/],
  [{ firstToken: { requestId: 'r', ttftMillis: -3 } }, /^ttft_millis must be more than 0 and at most a day, got -3$/],
  [{ firstToken: { requestId: 'r', ttftMillis: 86_400_001 } }, /^ttft_millis must be more than 0 and at most a day/],
  [{ finished: { requestId: 'r', tpotMillis: 0 } }, /^tpot_millis must be more than 0/],
  [{ firstToken: { requestId: 'r', ttftMillis: 5e-324 } }, /^ttft_millis must be at least 0\.001, got 5e-324$/],
  [{ finished: { requestId: 'r', tpotMillis: 0.0009 } }, /^tpot_millis must be at least 0\.001, got 0\.0009$/],
  [{ observation: { ...whole, ttftMillis: 1e-9 } }, /^ttft_millis must be at least 0\.001, got 1e-9$/],
  [
    { observation: { ...whole, input: { ...input, podType: 'p'.repeat(257) } } },
    /^input\.pod_type must have at most 256 bytes, got 257$/,
  ],
  [
    { dispatched: { ...dispatched, input: { ...input, serverIp: 'é'.repeat(129) } } },
    /^input\.server_ip must have at most 256 bytes, got 258$/,
  ],
  [{ finished: { requestId: 'r', outputTokens: -1 } }, /^output_tokens must not be negative, got -1$/],
  [{ observation: { targetModel: 'm', input } }, /^ttft_millis or tpot_millis must be given$/],
  [{ observation: { ...whole, ttftMillis: 0 } }, /^ttft_millis must be more than 0/],
  [{ dispatched: { ...dispatched, requestId: 'r\0' } }, /^request_id must not contain the character NUL$/],
  [{ dispatched: { ...dispatched, targetModel: 'm\0' } }, /^target_model must not contain the character NUL$/],
  [{ dispatched: { ...dispatched, input: { ...input, podType: '\0' } } }, /^input\.pod_type must not contain .* NUL$/],
  [{ observation: { ...whole, input: { ...input, serverIp: 'a\0b' } } }, /^input\.server_ip must not contain .* NUL$/],
  [{ observation: { ...whole, requestId: '\0' } }, /^request_id must not contain the character NUL$/],
  [{ firstToken: { requestId: '\0', ttftMillis: 3 } }, /^request_id must not contain the character NUL$/],
  [{ finished: { requestId: '\0' } }, /^request_id must not contain the character NUL$/],
];

for (const [how, report] of [
  ['a stream', server.reportStream],
  ['a batch', server.reportBatch],
  ['JSON lines', (events: object[]) => server.reportLines(events.map((event) => JSON.stringify(toLine(event))))],
] as const)
  test(`impossible events of ${how} are counted and named, the others are taken`, async () => {
    server.listenWith();
    const events = impossible.flatMap(([event]) => [event, EVENTS[1]!]);
    const report_ = await report(events);
    assert.equal(report_.accepted, impossible.length);
    assert.equal(report_.refused, impossible.length);
    assert.equal(server.reported().length, impossible.length);
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

test('bytes that are no event do not affect other events', async () => {
  server.listenWith();
  const good = encodeMessage(EventMessage, EVENTS[1]!);
  const bad = Buffer.from('0a05ff', 'hex');
  const stream = decodeReport(await server.client.clientStream(STREAM_PATH, [good, bad, good]));
  assert.deepEqual(stream, {
    accepted: 2,
    refused: 1,
    refusals: [{ index: 1, requestId: '', reason: 'it is cut off' }],
  });
  const batch = Buffer.concat(
    [good, bad, good].map((event) => Buffer.concat([Buffer.from([0x0a, event.length]), event])),
  );
  assert.deepEqual(decodeReport(await server.client.unary(BATCH_PATH, batch)), stream);
});

test('lines that are not JSON, or have unknown fields or malformed times, are named', async () => {
  server.listenWith();
  const report = await server.reportLines([
    '{',
    '{"finishd":{}}',
    '{"finished":{"requestId":"r","tokens":3}}',
    '{"finished":{"requestId":"r","at":"yesterday"}}',
    '{"finished":{"requestId":"r"},"firstToken":{"requestId":"r"}}',
    '{"constructor":{}}',
    '{"finished":{"requestId":"r","toString":1}}',
    '{"finished":{"requestId":"r","__proto__":{}}}',
    '{"finished":{"requestId":"\\ud800"}}',
    '{"finished":{"requestId":"r","tpotMillis":1e400}}',
  ]);
  assert.deepEqual(
    report.refusals.map(({ reason }) => reason),
    [
      'the line must be JSON',
      'there is no field "finishd"',
      'there is no field "finished.tokens"',
      'finished.at must be a time like "2026-01-31T12:00:00.250Z", got "yesterday"',
      'event must be one, got several',
      'there is no field "constructor"',
      'there is no field "finished.toString"',
      'there is no field "finished.__proto__"',
      'finished.requestId must be a string, got "\\ud800"',
      'tpotMillis must be a number of 64 bits, got 1e400',
    ],
  );
});

test('a line that is not UTF-8 does not affect other lines', async () => {
  server.listenWith();
  const line = Buffer.from('{"finished":{"requestId":"r"}}\n');
  const broken = Buffer.from(line);
  broken[line.indexOf('r"')] = 0xff;
  const response = await server.postBatch(Buffer.concat([line, broken, Buffer.from('\n'), line]), 'application/jsonl');
  assert.deepEqual(await response.json(), {
    accepted: 2,
    refused: 1,
    refusals: [{ index: 1, requestId: '', reason: 'the line must be UTF-8' }],
  });
});

test('what the sink refuses is answered under the position in the report, in order with the rest', async () => {
  server.listenWith((events) => {
    const refusals = events.flatMap((event, index) =>
      event.requestId === 'unknown' ? [{ index, reason: 'no such request was dispatched' }] : [],
    );
    return Promise.resolve({ accepted: events.length - refusals.length, refusals });
  });
  const late = { firstToken: { requestId: 'unknown', ttftMillis: 1 } };
  const report = await server.reportBatch([EVENTS[1]!, late, {}, EVENTS[1]!, late]);
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
  server.listenWith();
  const report = await server.reportBatch(Array.from({ length: 450 }, () => ({})));
  assert.equal(report.refused, 450);
  assert.deepEqual(
    report.refusals.map(({ index }) => index),
    Array.from({ length: 100 }, (_, index) => index),
  );
});

test('more than 10,000 events in a batch are INVALID_ARGUMENT with the limit', async () => {
  server.listenWith();
  await assert.rejects(server.reportBatch(Array.from({ length: 10_001 }, () => ({}))), {
    code: status.INVALID_ARGUMENT,
    details: 'Cannot report: events must be at most 10,000 in a batch, got more',
  });
});
