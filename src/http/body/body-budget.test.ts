import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { waitUntil } from '../../../test/support/wait-until.ts';
import { createLog } from '../../telemetry/log.ts';
import { createMetrics } from '../../telemetry/metrics.ts';
import { realWorld } from '../../world.ts';
import { replyJson } from '../endpoint.ts';
import { createHttpApp } from '../http-app.ts';
import { listenHttp } from '../http-server.ts';
import type { RouteMount } from '../mount.ts';
import { createRoutes } from '../routes.ts';
import { createBodyBudget } from './body-budget.ts';
import { FORM_MAX_BYTES, readText } from './limit-body.ts';

/** A body of this length fills a block, which is counted. */
const BLOCK = 65_536 + 64;

function openBodies(maxBlocks: number) {
  const budget = createBodyBudget({ maxBytes: maxBlocks * BLOCK });
  const gone: string[] = [];
  const open = (name: string, network = 'one') => {
    const body = budget.open(network, ({ code }) => gone.push(`${name} ${code}`));
    return { ...body, add: (bytes: number) => body.add(Buffer.alloc(bytes)) };
  };
  return { gone, open };
}

test('the oldest body that still arrives gives way, once', () => {
  const { gone, open } = openBodies(2);
  const [first, second, third] = [open('first'), open('second'), open('third')];
  first.add(BLOCK);
  second.add(BLOCK);
  assert.deepEqual(gone, []);
  third.add(1);
  assert.deepEqual(gone, ['first unavailable']);
  first.add(100 * BLOCK);
  first.close();
  third.add(BLOCK - 1);
  assert.deepEqual(gone, ['first unavailable']);
});

test('a body whose sender is not known yet gives way before older ones', () => {
  const { gone, open } = openBodies(2);
  const [known, stranger, late] = [open('known'), open('stranger'), open('late')];
  known.add(BLOCK);
  stranger.giveWayFirst();
  stranger.add(BLOCK);
  late.add(1);
  assert.deepEqual(gone, ['stranger unavailable']);
  late.add(2 * BLOCK);
  assert.deepEqual(gone, ['stranger unavailable', 'known unavailable']);
});

test('a network with more than half of the room gives way to others, its strangers before its callers', () => {
  const { gone, open } = openBodies(4);
  const other = open('old body of another', 'other');
  other.add(BLOCK);
  const greedy = ['first', 'second', 'third'].map((name) => open(name));
  greedy[1]!.giveWayFirst();
  for (const body of greedy) body.add(BLOCK);
  assert.deepEqual(gone, []);
  const late = open('late stranger of another', 'other');
  late.giveWayFirst();
  late.add(BLOCK);
  assert.deepEqual(gone, ['second unavailable']);
});

test('of networks with less than half of the room, strangers give way first, then the network with most', () => {
  const { gone, open } = openBodies(4);
  const [small, large, larger, stranger] = [
    open('small', 'a'),
    open('large', 'b'),
    open('second of b', 'b'),
    open('stranger', 'c'),
  ];
  stranger.giveWayFirst();
  for (const body of [small, large, larger, stranger]) body.add(BLOCK);
  open('late', 'd').add(1);
  assert.deepEqual(gone, ['stranger unavailable']);
  open('later', 'd').add(BLOCK);
  assert.deepEqual(gone, ['stranger unavailable', 'large unavailable']);
});

test('eight bodies of 8 MiB arrive at once', () => {
  const gone: string[] = [];
  const budget = createBodyBudget();
  for (let index = 0; index < 8; index++) {
    const body = budget.open('one', () => gone.push(`body ${index}`));
    for (let part = 0; part < 128; part++) body.add(Buffer.alloc(65_536));
  }
  assert.deepEqual(gone, []);
  budget.open('one', () => {}).add(Buffer.alloc(1));
  assert.deepEqual(gone, ['body 0']);
});

test('a body that has arrived whole keeps its room until it is closed', () => {
  const { gone, open } = openBodies(1);
  const [whole, late] = [open('whole'), open('late')];
  whole.add(BLOCK);
  assert.equal(whole.complete().length, BLOCK);
  late.add(1);
  assert.deepEqual(gone, ['late unavailable']);
  whole.close();
  open('next').add(BLOCK);
  assert.equal(gone.length, 1);
});

test('a body that was only announced does not give way, since that makes no room', () => {
  const { gone, open } = openBodies(1.5);
  const announced = open('announced');
  open('first').add(BLOCK);
  open('second').add(BLOCK);
  assert.deepEqual(gone, ['first unavailable']);
  announced.add(1);
  assert.deepEqual(gone, ['first unavailable']);
});

test('a body larger than all the room arrives while it is alone', () => {
  const { gone, open } = openBodies(1);
  const large = open('large');
  large.add(5 * BLOCK);
  assert.deepEqual(gone, []);
  open('other').add(1);
  assert.deepEqual(gone, ['large unavailable']);
});

test('the block of a body that gave way is used again, and that of a body that arrived is not', () => {
  const counted: number[] = [];
  const budget = createBodyBudget({ maxBytes: 1, countGarbage: (bytes) => counted.push(bytes) });
  const whole = budget.open('one', () => {});
  whole.add(Buffer.alloc(BLOCK, 1));
  const bytes = whole.complete();
  whole.close();
  const dropped = budget.open('one', () => {});
  dropped.add(Buffer.alloc(BLOCK, 2));
  dropped.close();
  dropped.add(Buffer.alloc(BLOCK, 3));
  const next = budget.open('one', () => {});
  next.add(Buffer.alloc(BLOCK, 4));
  assert.ok(bytes.every((byte) => byte === 1));
  assert.ok(next.complete().every((byte) => byte === 4));
  assert.deepEqual(counted, []);
});

test('what arrived is freed once it was copied, and counted as garbage where it is a part of other memory', () => {
  const counted: number[] = [];
  const budget = createBodyBudget({ countGarbage: (bytes) => counted.push(bytes) });
  const body = budget.open('one', () => {});
  const [own, shared] = [Buffer.alloc(100, 1), Buffer.alloc(200, 2)];
  body.add(own);
  body.add(shared.subarray(100));
  assert.deepEqual([own.length, shared.length, counted], [0, 200, [100]]);
  assert.equal(body.complete().length, 200);
});

const ROOM = 300_000;
const BODY = 'x'.repeat(200_000);
/** The fast path, and the routes, which take the second one: its framing, or its mount. */
const ways: [title: string, path: string, isChunked: boolean][] = [
  ['on the fast path', '/calls/length', false],
  ['in chunks', '/calls/length', true],
  ['of a route', '/routes/length', false],
];

/** A call that waits before it reads its body. */
function createHeldCall() {
  const [entered, left, goOn] = [1, 2, 3].map(() => Promise.withResolvers<void>()) as [Gate, Gate, Gate];
  const { promise: outcome, resolve } = Promise.withResolvers<string>();
  return {
    entered,
    left,
    goOn,
    outcome,
    read: async (readBody: () => Promise<unknown>) => {
      entered.resolve();
      await goOn.promise;
      const reading = readBody();
      void reading.then(
        () => resolve('read'),
        () => resolve('refused'),
      );
      await reading;
    },
  };
}

type Gate = PromiseWithResolvers<void>;
type HeldCall = ReturnType<typeof createHeldCall>;

async function withServer(run: (url: string, held: HeldCall) => Promise<void>): Promise<void> {
  const held = createHeldCall();
  const calls: RouteMount = {
    path: '/calls',
    errors: 'problem',
    routes: createRoutes(),
    endpoints: [
      {
        method: 'POST',
        path: '/length',
        answer: async (call) => replyJson({ length: (await call.bytes()).length }),
      },
      {
        method: 'POST',
        path: '/held',
        answer: async (call) => {
          await held.read(() => call.bytes());
          return replyJson({});
        },
      },
    ],
  };
  const routes: RouteMount = { path: '/routes', errors: 'problem', routes: createRoutes() };
  routes.routes.post('/length', async (c) => c.json({ length: (await c.req.text()).length }));
  routes.routes.post('/form', async (c) => c.json({ length: (await readText(c.req, FORM_MAX_BYTES)).length }));
  routes.routes.post('/held', async (c) => {
    await held.read(() => c.req.text());
    return c.json({});
  });
  const log = createLog('silent');
  const metrics = createMetrics();
  const app = createHttpApp({
    log,
    metrics,
    world: realWorld,
    trustedProxies: [],
    mounts: [calls, routes],
    maxBodyBytes: 1_000_000,
    bodyBudget: createBodyBudget({ maxBytes: ROOM }),
    checkReady: async () => {},
  });
  const http = await listenHttp({ host: '127.0.0.1', port: 0 });
  http.serve((incoming, outgoing) => {
    incoming.once('close', held.left.resolve);
    app(incoming, outgoing);
  });
  try {
    await run(http.url, held);
  } finally {
    await http.drain(0);
  }
}

interface Beginning {
  readonly isChunked: boolean;
  /** What is sent of it. */
  readonly sent: string;
}

async function beginBody(url: string, path: string, { isChunked, sent }: Beginning): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  await once(socket, 'connect');
  const framing = isChunked
    ? `Transfer-Encoding: chunked\r\n\r\n${BODY.length.toString(16)}\r\n`
    : `Content-Length: ${BODY.length + 1}\r\n\r\n`;
  socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${framing}${sent}`);
  return socket;
}

for (const [title, path, isChunked] of ways)
  test(`a body ${title} that does not end is refused for others, which are answered`, async () => {
    await withServer(async (url) => {
      const held = await beginBody(url, path, { isChunked, sent: BODY });
      const refusal = text(held);
      let answered = 0;
      const isRefused = () => held.readableEnded || held.closed;
      await waitUntil(async () => {
        const answer = await fetch(url + path, { method: 'POST', body: BODY });
        if (answer.status === 200) answered++;
        return answered > 0 && isRefused();
      });
      assert.match(await refusal, /^HTTP\/1\.1 503 [\s\S]*Retry-After: 1[\s\S]*too many large bodies arrive at once/i);
    });
  });

test('a form in chunks is refused as soon as it is longer than a form may be', async () => {
  await withServer(async (url) => {
    const sent = 'x'.repeat(FORM_MAX_BYTES + 1);
    const socket = await beginBody(url, '/routes/form', { isChunked: true, sent });
    socket.end();
    assert.match(await text(socket), /^HTTP\/1\.1 413 [\s\S]*its body must be at most 16384 bytes/);
  });
});

for (const [title, path, isChunked] of ways)
  test(`bodies ${title} that were only announced take no room`, async () => {
    await withServer(async (url) => {
      const { hostname, port } = new URL(url);
      const framing = isChunked ? 'Transfer-Encoding: chunked' : 'Content-Length: 900000';
      const sockets = await Promise.all(
        Array.from({ length: 10 }, async () => {
          const socket = connect(Number(port), hostname);
          await once(socket, 'connect');
          socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\n${framing}\r\n\r\n`);
          return socket;
        }),
      );
      const answer = await fetch(url + path, { method: 'POST', body: BODY });
      assert.deepEqual([answer.status, await answer.json()], [200, { length: BODY.length }]);
      for (const socket of sockets) socket.destroy();
    });
  });

test('bodies that were answered leave their room to others', async () => {
  await withServer(async (url) => {
    for (const [, path] of ways)
      for (let i = 0; i < 5; i++) {
        const answer = await fetch(url + path, { method: 'POST', body: BODY });
        assert.equal(answer.status, 200);
        await answer.text();
      }
  });
});

for (const [title, path, isChunked] of ways)
  test(`a body ${title} whose caller left before it was read is refused`, async () => {
    await withServer(async (url, held) => {
      // So little that the server has read all of it, and sees at once that the caller leaves.
      const socket = await beginBody(url, path.replace('length', 'held'), { isChunked, sent: '{' });
      await held.entered.promise;
      socket.destroy();
      await held.left.promise;
      held.goOn.resolve();
      assert.equal(await held.outcome, 'refused');
    });
  });
