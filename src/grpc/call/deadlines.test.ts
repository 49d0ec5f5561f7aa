/** A deadline counts from the first headers, and ends the call whatever it waits for. */
import assert from 'node:assert/strict';
import { after, mock, test } from 'node:test';
import { FlowClient } from '../../../test/support/grpc/flow-client.ts';
import { ECHO_PATH, echoMethods, HELLO, SERVICE, startGrpcServer } from '../../../test/support/grpc/grpc-server.ts';
import { block, DATA, frame, frameMessage, HEADERS, SETTINGS } from '../../../test/support/grpc/http2-frames.ts';
import { encodeHeaderBlock } from '../hpack/hpack-encoder.ts';

const running = await startGrpcServer(echoMethods);
const { port } = running.server;
after(() => running[Symbol.asyncDispose]());

function headers(timeout: string, path = ECHO_PATH): Buffer {
  return encodeHeaderBlock([
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', path],
    ['content-type', 'application/grpc'],
    ['te', 'trailers'],
    ['grpc-timeout', timeout],
  ]);
}

async function readStatus(timeout: string, then: (client: FlowClient) => void, path = ECHO_PATH): Promise<string> {
  const client = await FlowClient.connect(port);
  then(client);
  client.send(frame(HEADERS, 4, 1, headers(timeout, path)));
  await client.untilEnded(1);
  client.socket.destroy();
  return /grpc-status.(\d+)/s.exec(String(client.endOf(1)?.payload))?.[1] ?? '';
}

test('a call without a message ends at its deadline', async () => {
  assert.equal(await readStatus('50m', () => {}), '4');
});

test('a message that comes after the deadline is not answered', async () => {
  const client = await FlowClient.connect(port);
  client.send(frame(HEADERS, 4, 1, headers('1m')), frame(DATA, 0, 1, frameMessage(HELLO).subarray(0, 4)));
  await client.untilEnded(1);
  client.send(frame(DATA, 1, 1, frameMessage(HELLO).subarray(4)));
  await client.settle();
  assert.ok(!client.frames.some(({ type }) => type === DATA));
  client.socket.destroy();
});

for (const method of ['Echo', 'Later', 'EchoAll'])
  test(`an answer that waits for a window ends at its deadline (${method})`, async () => {
    const path = `/${SERVICE}/${method}`;
    const client = await FlowClient.connect(port);
    client.send(frame(SETTINGS, 0, 0, Buffer.from('000400000000', 'hex')));
    client.send(frame(HEADERS, 4, 1, headers('50m', path)), frame(DATA, 1, 1, frameMessage(HELLO)));
    await client.untilEnded(1);
    assert.match(String(client.endOf(1)?.payload), /grpc-status.4/s);
    assert.ok(!client.frames.some(({ type }) => type === DATA));
    client.socket.destroy();
  });

for (const timeout of ['', '1', 'S', '1s', '-1S', '1.5S', '123456789S', '1 S', '1X'])
  test(`a call with the malformed timeout "${timeout}" is refused`, async () => {
    assert.equal(await readStatus(timeout, () => {}), '13');
  });

test('a call whose whole message came in one piece has as long as its method needs', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.after(() => mock.timers.reset());
  const client = await FlowClient.connect(port);
  client.send(frame(HEADERS, 4, 1, block(`/${SERVICE}/Never`)), frame(DATA, 1, 1, frameMessage(HELLO)));
  await client.settle();
  mock.timers.tick(600_000);
  await client.settle();
  assert.equal(client.endOf(1), undefined);
  client.socket.destroy();
});
