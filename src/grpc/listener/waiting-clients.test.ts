/** A connection that waits for its client gives way before one that makes progress, however old that is. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FlowClient } from '../../../test/support/grpc/flow-client.ts';
import { ECHO_PATH, echoMethods, HELLO, SERVICE, startGrpcServer } from '../../../test/support/grpc/grpc-server.ts';
import {
  block,
  CONTINUATION,
  DATA,
  frame,
  frameMessage,
  HEADERS,
  SETTINGS,
  WINDOW_UPDATE,
} from '../../../test/support/grpc/http2-frames.ts';
import { realWorld } from '../../world.ts';
import { encodeHeaderBlock } from '../hpack/hpack-encoder.ts';

const NOTHING = Buffer.alloc(0);
const NO_WINDOW = Buffer.from('000400000000', 'hex');
const watch = [frame(HEADERS, 4, 1, block('/grpc.health.v1.Health/Watch')), frame(DATA, 1, 1, frameMessage(NOTHING))];

const echoed = (id: number): readonly Buffer[] => [
  frame(HEADERS, 4, id, block()),
  frame(DATA, 1, id, frameMessage(HELLO)),
];

/** A clock that a test can put forward. */
function createClock() {
  let aheadMs = 0;
  const world = { ...realWorld, monotonicMs: () => realWorld.monotonicMs() + aheadMs };
  const goOn = (ms: number): void => {
    aheadMs += ms;
  };
  return { world, goOn };
}

async function checkAnswered(client: FlowClient, streamId: number): Promise<void> {
  await client.untilEnded(streamId);
  assert.match(String(client.endOf(streamId)?.payload), /grpc-status.0/s);
}

for (const [what, parts] of [
  ['watch health', watch],
  ['do not end their request', [frame(HEADERS, 4, 1, block(`/${SERVICE}/Never`))]],
  [
    'do not open the window for their answer',
    [frame(SETTINGS, 0, 0, NO_WINDOW), frame(HEADERS, 4, 1, block()), frame(DATA, 1, 1, frameMessage(HELLO))],
  ],
] as const)
  test(`connections of as many networks, whose calls ${what}, do not keep another network out`, async () => {
    const { world, goOn } = createClock();
    await using running = await startGrpcServer(echoMethods, { maxConnections: 3, world });
    const { port } = running.server;
    const waiting: FlowClient[] = [];
    for (const address of ['127.0.0.2', '127.0.0.3', '127.0.0.4'])
      waiting.push(await FlowClient.connectWith(port, address, ...parts));
    goOn(2000);
    const honest = await FlowClient.connectWith(port, '127.0.0.5', ...echoed(1));
    await checkAnswered(honest, 1);
    assert.deepEqual(
      waiting.slice(1).map(({ isClosed }) => isClosed),
      [false, false],
    );
    for (const { socket } of [honest, ...waiting]) socket.destroy();
  });

for (const [what, path] of [
  ['request has just begun', ECHO_PATH],
  ['stream of messages has just had one', `/${SERVICE}/EchoAll`],
] as const)
  test(`the oldest connection, whose ${what}, does not give way while others have watched health for seconds`, async () => {
    const { world, goOn } = createClock();
    await using running = await startGrpcServer(echoMethods, { maxConnections: 3, world });
    const { port } = running.server;
    const oldest = await FlowClient.connectWith(port, '127.0.0.2', frame(HEADERS, 4, 1, block(path)));
    const watchers = [
      await FlowClient.connectWith(port, '127.0.0.3', ...watch),
      await FlowClient.connectWith(port, '127.0.0.4', ...watch),
    ];
    goOn(5000);
    const isStream = path !== ECHO_PATH;
    oldest.send(isStream ? frame(DATA, 0, 1, frameMessage(HELLO)) : frame(HEADERS, 4, 3, block(path)));
    await oldest.settle();
    const honest = await FlowClient.connectWith(port, '127.0.0.5', ...echoed(1));
    await checkAnswered(honest, 1);
    await watchers[0]!.closed;
    const streamId = isStream ? 1 : 3;
    oldest.send(frame(DATA, 1, streamId, isStream ? NOTHING : frameMessage(HELLO)));
    await checkAnswered(oldest, streamId);
    for (const { socket } of [oldest, honest, ...watchers]) socket.destroy();
  });

test('a connection that was opened just now does not give way while others have watched health for seconds', async () => {
  const { world, goOn } = createClock();
  await using running = await startGrpcServer(echoMethods, { maxConnections: 3, world });
  const { port } = running.server;
  const watchers = [
    await FlowClient.connectWith(port, '127.0.0.2', ...watch),
    await FlowClient.connectWith(port, '127.0.0.3', ...watch),
  ];
  goOn(5000);
  const fresh = await FlowClient.connect(port, '127.0.0.4');
  const honest = await FlowClient.connectWith(port, '127.0.0.5', ...echoed(1));
  await checkAnswered(honest, 1);
  fresh.send(...echoed(1));
  await checkAnswered(fresh, 1);
  await watchers[0]!.closed;
  assert.ok(!watchers[1]!.isClosed);
  for (const { socket } of [fresh, honest, ...watchers]) socket.destroy();
});

const LONG_MESSAGE = frameMessage(Buffer.alloc(90_000));
const SMALL_PART = Buffer.alloc(8192);
const SMALL_WINDOW = Buffer.from('00002000', 'hex');

for (const [what, open, goOn] of [
  [
    'sends a message',
    (client) => client.sendData(1, LONG_MESSAGE.subarray(0, 5), false),
    (client) => client.sendData(1, SMALL_PART, false),
  ],
  [
    'reads an answer',
    (client) => client.sendData(1, LONG_MESSAGE),
    async (client) => client.send(...[0, 1].map((id) => frame(WINDOW_UPDATE, 0, id, SMALL_WINDOW))),
  ],
] as readonly [string, open: (client: FlowClient) => Promise<void>, goOn: (client: FlowClient) => Promise<void>][])
  test(`the oldest connection, whose client ${what} in frames of 8 KiB, does not give way before one that stopped later`, async () => {
    const { world, goOn: passTime } = createClock();
    await using running = await startGrpcServer(echoMethods, { maxConnections: 2, world });
    const { port } = running.server;
    const oldest = await FlowClient.connectWith(
      port,
      '127.0.0.2',
      frame(SETTINGS, 0, 0, NO_WINDOW),
      frame(HEADERS, 4, 1, block()),
    );
    await open(oldest);
    let stopped: FlowClient | undefined;
    for (let part = 0; part < 10; part++) {
      if (part === 3) stopped = await FlowClient.connectWith(port, '127.0.0.3', frame(HEADERS, 4, 1, block()));
      passTime(300);
      await goOn(oldest);
      await oldest.settle();
    }
    const honest = await FlowClient.connectWith(port, '127.0.0.4', ...echoed(1));
    await checkAnswered(honest, 1);
    await Promise.race([oldest.closed, stopped!.closed]);
    assert.ok(!oldest.isClosed);
    for (const { socket } of [oldest, honest, stopped!]) socket.destroy();
  });

test('the oldest connection, whose message waits for memory that others use, does not give way', async () => {
  const { world, goOn } = createClock();
  const limits = { maxMessageBytes: 1_000_000, bufferBytes: 4_000_000, maxConnections: 3 };
  await using running = await startGrpcServer(echoMethods, { ...limits, world });
  const { port } = running.server;
  const message = frameMessage(Buffer.alloc(limits.maxMessageBytes));
  const begun = [frame(HEADERS, 4, 1, block()), frame(DATA, 0, 1, message.subarray(0, 1000))];
  const oldest = await FlowClient.connect(port, '127.0.0.2');
  const senders = [
    await FlowClient.connectWith(port, '127.0.0.3', ...begun),
    await FlowClient.connectWith(port, '127.0.0.4', ...begun),
  ];
  oldest.send(...begun);
  await oldest.settle();
  assert.deepEqual(
    [oldest, ...senders].map((client) => client.windowOf(1) >= message.length - 1000),
    [false, true, true],
  );
  goOn(5000);
  const honest = await FlowClient.connectWith(port, '127.0.0.5', ...echoed(1));
  await checkAnswered(honest, 1);
  await senders[0]!.closed;
  await oldest.settle();
  assert.ok(!oldest.isClosed);
  for (const { socket } of [oldest, honest, ...senders]) socket.destroy();
});

/** The call is refused, and its header block takes the server more than a share of a turn. */
function refused(id: number): Buffer {
  const bytes = Buffer.concat([block(), encodeHeaderBlock([['x-long', 'x'.repeat(97_000)]])]);
  const parts = Array.from({ length: 6 }, (_, index) => bytes.subarray(16_384 * index, 16_384 * (index + 1)));
  return Buffer.concat(
    parts.map((part, index) =>
      frame(index === 0 ? HEADERS : CONTINUATION, index === 5 ? 4 : index === 0 ? 1 : 0, id, part),
    ),
  );
}

test('the oldest connection, whose message has come and waits for its turn, does not give way', async () => {
  const { world, goOn } = createClock();
  await using running = await startGrpcServer(echoMethods, { maxConnections: 2, world });
  const { port } = running.server;
  const oldest = await FlowClient.connectWith(port, '127.0.0.2', frame(HEADERS, 4, 1, block()));
  const watcher = await FlowClient.connect(port, '127.0.0.3');
  oldest.send(refused(3), refused(5), frame(DATA, 1, 1, frameMessage(HELLO)));
  await oldest.untilEnded(3);
  watcher.send(...watch);
  await watcher.settle();
  assert.equal(oldest.endOf(5), undefined);
  goOn(2000);
  const honest = await FlowClient.connectWith(port, '127.0.0.4', ...echoed(1));
  await checkAnswered(honest, 1);
  await watcher.closed;
  await checkAnswered(oldest, 1);
  for (const { socket } of [oldest, honest]) socket.destroy();
});
