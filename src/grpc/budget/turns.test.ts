/** A client that is never short of calls does not make the others wait for all of them. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { FlowClient } from '../../../test/support/grpc/flow-client.ts';
import { clientStream, SERVICE, startGrpcServer } from '../../../test/support/grpc/grpc-server.ts';
import { block, DATA, frame, frameMessage, HEADERS, WINDOW_UPDATE } from '../../../test/support/grpc/http2-frames.ts';
import type { GrpcMethod } from '../call/service.ts';

const MANY = 10_000;

/** How many calls and messages of the greedy client had been answered when the other client got its answer. */
let greedy = 0;
let greedyAtAnswer: number | undefined;
/** Streams that wait for their end, and streams that have ended. */
let waiting = 0;
let ended = 0;

const methods: readonly GrpcMethod[] = [
  { kind: 'unary', name: 'Count', handle: count },
  clientStream('CountAll', () => ({ take: count })),
  clientStream('Wait', () => {
    waiting += 1;
    return {
      close: () => {
        ended += 1;
      },
    };
  }),
  {
    kind: 'unary',
    name: 'Other',
    handle: (request) => {
      greedyAtAnswer = greedy;
      return request;
    },
  },
];

function count(request: Uint8Array): Uint8Array {
  greedy += 1;
  return request;
}

const running = await startGrpcServer(methods);
const { port } = running.server;
after(() => running[Symbol.asyncDispose]());

const path = (method: string): Buffer => block(`/${SERVICE}/${method}`);
const message = frameMessage(Buffer.alloc(20));

const sends: [what: string, send: (client: FlowClient) => void][] = [
  [
    'calls',
    (client) => {
      const calls = Array.from({ length: MANY }, (_, index) => [
        frame(HEADERS, 4, 2 * index + 1, path('Count')),
        frame(DATA, 1, 2 * index + 1, message),
      ]);
      client.send(...calls.flat());
    },
  ],
  [
    'messages of many streams',
    (client) => {
      const ids = Array.from({ length: 100 }, (_, index) => 2 * index + 1);
      const messages = Buffer.concat(Array.from({ length: MANY / ids.length }, () => message));
      client.send(...ids.flatMap((id) => [frame(HEADERS, 4, id, path('CountAll')), frame(DATA, 1, id, messages)]));
    },
  ],
  [
    'messages of one stream',
    (client) => {
      client.send(frame(HEADERS, 4, 1, path('CountAll')));
      client.sendAllowed(1, Buffer.concat(Array.from({ length: MANY }, () => message)));
    },
  ],
];
for (const [what, send] of sends)
  test(`a call is answered before a connection that sends many ${what} is done`, async () => {
    const other = await FlowClient.connect(port);
    const client = await FlowClient.connect(port);
    client.send(frame(WINDOW_UPDATE, 0, 0, Buffer.from('3fffffff', 'hex')));
    greedy = 0;
    greedyAtAnswer = undefined;
    send(client);
    other.send(frame(HEADERS, 4, 1, path('Other')), frame(DATA, 1, 1, message));
    await other.untilEnded(1);
    assert.ok(greedyAtAnswer !== undefined && greedyAtAnswer < 500, `${greedyAtAnswer} came first`);
    await client.until(() => greedy === MANY);
    assert.equal(greedy, MANY);
    await client.settle();
    other.socket.destroy();
    client.socket.destroy();
  });

test('a call is answered early, however many connections send many calls', async () => {
  const other = await FlowClient.connect(port);
  const clients = await Promise.all(Array.from({ length: 40 }, () => FlowClient.connect(port)));
  greedy = 0;
  greedyAtAnswer = undefined;
  for (const client of clients)
    client.send(
      ...Array.from({ length: 500 }, (_, index) => [
        frame(HEADERS, 4, 2 * index + 1, path('Count')),
        frame(DATA, 1, 2 * index + 1, message),
      ]).flat(),
    );
  other.send(frame(HEADERS, 4, 1, path('Other')), frame(DATA, 1, 1, message));
  await other.untilEnded(1);
  assert.ok(greedyAtAnswer !== undefined && greedyAtAnswer < 3000, `${greedyAtAnswer} came first`);
  await Promise.all(clients.map((client) => client.untilEnded(999)));
  assert.equal(greedy, 40 * 500);
  for (const client of [other, ...clients]) client.socket.destroy();
});

test('every connection that is never short of calls goes on', async () => {
  const clients = await Promise.all(Array.from({ length: 5 }, () => FlowClient.connect(port)));
  const last = 2 * 999 + 1;
  for (const client of clients)
    for (let id = 1; id <= last; id += 2)
      client.send(frame(HEADERS, 4, id, path('Count')), frame(DATA, 1, id, message));
  await Promise.all(clients.map((client) => client.untilEnded(last)));
  for (const client of clients) {
    assert.equal(client.goAwayCode, undefined);
    assert.match(String(client.endOf(last)?.payload), /grpc-status.0/s);
    client.socket.destroy();
  }
});

test('the calls of a connection that is gone end few in a turn', async () => {
  const client = await FlowClient.connect(port);
  const ids = Array.from({ length: 1000 }, (_, index) => 2 * index + 1);
  client.send(...ids.map((id) => frame(HEADERS, 4, id, path('Wait'))));
  while (waiting < ids.length) await nextTurn();
  client.socket.destroy();
  while (ended < ids.length) {
    const before = ended;
    await nextTurn();
    assert.ok(ended - before <= 120, `${ended - before} ended in one turn`);
  }
});

test('calls of a method that does not exist are refused few in a turn, however long their path is once it is encoded', async () => {
  const client = await FlowClient.connect(port);
  const last = 2 * MANY - 1;
  const head = block(`/${'%'.repeat(200)}`);
  client.send(...Array.from({ length: MANY }, (_, index) => frame(HEADERS, 5, 2 * index + 1, head)));
  let before = client.frames.length;
  while (client.frames.at(-1)?.streamId !== last) {
    await nextTurn();
    const refused = client.frames.length - before;
    before = client.frames.length;
    assert.ok(refused <= 60, `${refused} were refused in one turn`);
  }
  assert.match(String(client.endOf(last)?.payload), /grpc-status.*12/s);
  client.socket.destroy();
});
