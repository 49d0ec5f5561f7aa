/** Frames of any type that cost work and advance no call are counted. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { FlowClient } from '../../../test/support/grpc/flow-client.ts';
import { ECHO_PATH, echoMethods, HELLO, SERVICE, startGrpcServer } from '../../../test/support/grpc/grpc-server.ts';
import {
  block,
  DATA,
  frame,
  frameMessage,
  GOAWAY,
  HEADERS,
  PING,
  PRIORITY,
  SETTINGS,
  WINDOW_UPDATE,
} from '../../../test/support/grpc/http2-frames.ts';

const ENHANCE_YOUR_CALM = 11;
const MORE_THAN_ALLOWED = 6000;

const running = await startGrpcServer(echoMethods);
const { port } = running.server;
after(() => running[Symbol.asyncDispose]());

const never = block(`/${SERVICE}/Never`);
const increment = Buffer.from('00000001', 'hex');
const openCall = frame(HEADERS, 4, 1, never);

const floods: [what: string, ...frames: Buffer[]][] = [
  ['empty data', frame(DATA, 0, 1)],
  ['data of nothing but padding', frame(DATA, 8, 1, Buffer.of(3, 0, 0, 0))],
  ['pings', frame(PING, 0, 0, Buffer.alloc(8))],
  ['answers to pings', frame(PING, 1, 0, Buffer.alloc(8))],
  ['settings', frame(SETTINGS, 0, 0)],
  ['acknowledgements of settings', frame(SETTINGS, 1, 0)],
  ['priorities', frame(PRIORITY, 0, 3, Buffer.from('0000000010', 'hex'))],
  ['window updates of a connection', frame(WINDOW_UPDATE, 0, 0, increment)],
  ['window updates of a stream', frame(WINDOW_UPDATE, 0, 1, increment)],
  [
    'window updates of an ended stream',
    openCall,
    frame(3, 0, 1, Buffer.alloc(4)),
    frame(WINDOW_UPDATE, 0, 1, increment),
  ],
  ['frames of unknown types', frame(0x42, 0, 1)],
  ['that it goes away', frame(GOAWAY, 0, 0, Buffer.alloc(8))],
  [
    'heads of a stream that was reset',
    openCall,
    frame(HEADERS, 4, 3, Buffer.of(0x82)),
    frame(HEADERS, 4, 3, Buffer.of(0x82)),
  ],
];
for (const [what, ...frames] of floods)
  test(`a connection that sends ${what} again and again is asked to calm down`, async () => {
    const client = await FlowClient.connect(port);
    const repeated = frames.at(-1)!;
    client.send(openCall, ...frames.slice(1, -1), ...Array.from({ length: MORE_THAN_ALLOWED }, () => repeated));
    await client.closed;
    assert.equal(client.goAwayCode, ENHANCE_YOUR_CALM);
  });

const provoked: [what: string, (streamId: number) => Buffer[]][] = [
  ['opens windows by 0', (id) => [frame(HEADERS, 4, id, never), frame(WINDOW_UPDATE, 0, id, Buffer.alloc(4))]],
  [
    'opens windows beyond their limit',
    (id) => [frame(HEADERS, 4, id, never), frame(WINDOW_UPDATE, 0, id, Buffer.from('7fffffff', 'hex'))],
  ],
];
for (const [what, attack] of provoked)
  test(`a connection that makes the server reset streams, since it ${what}, is asked to calm down`, async () => {
    const client = await FlowClient.connect(port);
    client.send(...Array.from({ length: MORE_THAN_ALLOWED }, (_, index) => attack(2 * index + 1)).flat());
    await client.closed;
    assert.equal(client.goAwayCode, ENHANCE_YOUR_CALM);
  });

test('each entry of settings is counted', async () => {
  const client = await FlowClient.connect(port);
  const entries = Buffer.concat(Array.from({ length: 2730 }, () => Buffer.from('00040000ffff', 'hex')));
  client.send(frame(SETTINGS, 0, 0, entries), frame(SETTINGS, 0, 0, entries));
  await client.closed;
  assert.equal(client.goAwayCode, ENHANCE_YOUR_CALM);
});

test('the last of several entries for the window counts, and changes what open streams may be sent', async () => {
  const client = await FlowClient.connect(port);
  const windows = Buffer.from('000400000000' + '00047fffffff' + '000400000003', 'hex');
  client.send(frame(SETTINGS, 0, 0, Buffer.from('000400000000', 'hex')));
  client.send(frame(HEADERS, 4, 1, block(ECHO_PATH)), frame(DATA, 1, 1, frameMessage(HELLO)));
  await client.settle();
  client.send(frame(SETTINGS, 0, 0, windows));
  await client.settle();
  const data = client.frames.filter(({ type }) => type === DATA).map(({ payload }) => payload.length);
  assert.deepEqual(data, [3]);
  client.socket.destroy();
});

test('window updates in answer to data are not counted', async () => {
  const client = await FlowClient.connect(port);
  for (let index = 0; index < 4000; index++) {
    const id = 2 * index + 1;
    client.send(frame(HEADERS, 4, id, block(ECHO_PATH)), frame(DATA, 1, id, frameMessage(HELLO)));
    if (index % 100 === 99) await client.untilEnded(id);
    client.send(frame(WINDOW_UPDATE, 0, 0, increment), frame(WINDOW_UPDATE, 0, id, increment));
  }
  await client.settle();
  assert.equal(client.goAwayCode, undefined);
  client.socket.destroy();
});
