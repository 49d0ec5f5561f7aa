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
  assert.ok(answer!.payload.length < 8192, `${answer!.payload.length} bytes`);
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
