/** Bodies that arrive slowly at a real server, on each path that a request can take. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { waitUntil } from '../../../test/support/basics/wait-until.ts';
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

const ROOM = 300_000;
const BODY = 'x'.repeat(200_000);
/** The fast path, and two requests that go through the routes: by their framing, or by their mount. */
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
  /** The part of the body that is sent. */
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
      // The server has read all of these few bytes, and notices at once that the caller leaves.
      const socket = await beginBody(url, path.replace('length', 'held'), { isChunked, sent: '{' });
      await held.entered.promise;
      socket.destroy();
      await held.left.promise;
      held.goOn.resolve();
      assert.equal(await held.outcome, 'refused');
    });
  });
