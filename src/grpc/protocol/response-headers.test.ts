/** The header section of a failure stays small, whatever the caller has sent: a frame above 16 KB would end the connection. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ECHO_PATH, echo, HELLO, startGrpcServer } from '../../../test/support/grpc/grpc-server.ts';
import { BEGINNING, DATA, frame, frameMessage, HEADERS, talk } from '../../../test/support/grpc/http2-frames.ts';
import { encodeHeaderBlock } from '../hpack/hpack-encoder.ts';
import { encodeFailureTrailers } from './response-headers.ts';
import { statusCodeOf } from './status.ts';

test('an encoding of 12 KB is not repeated whole in the status', async () => {
  await using running = await startGrpcServer([echo]);
  const block = encodeHeaderBlock([
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', ECHO_PATH],
    ['content-type', 'application/grpc'],
    ['grpc-encoding', 'x'.repeat(12_000)],
  ]);
  const call = [frame(HEADERS, 4, 1, block), frame(DATA, 1, 1, frameMessage(HELLO, 1))];
  const frames = await talk(running.server.port, ...BEGINNING, ...call);
  const answer = frames.find(({ type }) => type === HEADERS);
  assert.match(String(answer?.payload), /grpc-encoding must be one of/);
  assert.match(String(answer?.payload), /got "x{100}"$/);
});

test('a content type of 15 KB is not repeated whole in the refusal', async () => {
  await using running = await startGrpcServer([echo]);
  const block = encodeHeaderBlock([
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', ECHO_PATH],
    ['content-type', 'x'.repeat(15_000)],
  ]);
  const frames = await talk(running.server.port, ...BEGINNING, frame(HEADERS, 5, 1, block));
  const body = frames.find(({ type }) => type === DATA);
  assert.match(String(body?.payload), /^Cannot answer: content-type must be application\/grpc .*"x{100}"\n$/);
});

test('a message that becomes longer when it is encoded is cut off after a whole character', () => {
  const trailers = encodeFailureTrailers({ code: statusCodeOf('NOT_FOUND'), details: '漢'.repeat(1000) });
  const message = /(%E6%BC%A2)+$/.exec(trailers.toString('latin1'))?.[0] ?? '';
  assert.equal(message.length, 455 * 9);
});

const statuses: [details: string, message: string][] = [
  ['100 % of it', '100 %25 of it'],
  ['line\r\n\x7f', 'line%0D%0A%7F'],
  ['模型 "é" 😀~', '%E6%A8%A1%E5%9E%8B "%C3%A9" %F0%9F%98%80~'],
  ['\ud83d', '%EF%BF%BD'],
  [`${'a'.repeat(4094)}%`, 'a'.repeat(4094)],
  [`${'a'.repeat(4093)}%%`, `${'a'.repeat(4093)}%25`],
  [`${'a'.repeat(4085)}😀`, 'a'.repeat(4085)],
  [`${'a'.repeat(4084)}😀`, `${'a'.repeat(4084)}%F0%9F%98%80`],
];
for (const [details, message] of statuses)
  test(`the message ${JSON.stringify(details.slice(-20))} is percent-encoded and has at most 4 KB`, () => {
    const trailers = encodeFailureTrailers({ code: statusCodeOf('NOT_FOUND'), details }).toString('latin1');
    const written = trailers.slice(trailers.length - message.length);
    assert.equal(written, message);
    assert.ok(!trailers.slice(0, -message.length).includes('%'));
  });

test('a path of 200 characters is not repeated whole in the status of an unknown method', async () => {
  await using running = await startGrpcServer([echo]);
  const head = encodeHeaderBlock([
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', `/${'x'.repeat(200)}`],
    ['content-type', 'application/grpc'],
  ]);
  const frames = await talk(running.server.port, ...BEGINNING, frame(HEADERS, 5, 1, head));
  const answer = frames.find(({ type }) => type === HEADERS);
  assert.match(String(answer?.payload), /there is no method \/x{99}$/);
});
