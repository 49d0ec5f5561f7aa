import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { createLog } from '../../telemetry/log.ts';
import { createMetrics } from '../../telemetry/metrics.ts';
import { realWorld } from '../../world.ts';
import { type Endpoint, replyJson } from '../endpoint.ts';
import { createHttpApp } from '../http-app.ts';
import { listenHttp } from '../http-server.ts';
import type { RouteMount } from '../mount.ts';
import { createRoutes } from '../routes.ts';
import { type BodyBudget, createBodyBudget } from './body-budget.ts';

const BODIES = 48;
/** Fewer bytes than the kernel buffers for a connection while nothing is read. */
const BODY_BYTES = 500_000;
const READS_IN_A_TURN = 4;

/** Counts the parts of bodies in each turn of the event loop, without those that a body has when its reader starts. */
function countReads() {
  const budget = createBodyBudget();
  let [turn, inTurn, most, all] = [0, 0, 0, 0];
  let next: NodeJS.Immediate;
  const endTurn = (): void => {
    most = Math.max(most, inTurn);
    inTurn = 0;
    turn += 1;
    next = setImmediate(endTurn);
  };
  endTurn();
  const bodyBudget: BodyBudget = {
    open(network, giveWay) {
      const body = budget.open(network, giveWay);
      const firstTurn = turn;
      const add = (bytes: Uint8Array): void => {
        if (turn !== firstTurn) inTurn += 1;
        all += 1;
        body.add(bytes);
      };
      return { ...body, add };
    },
  };
  return { bodyBudget, stop: () => clearImmediate(next), read: () => ({ most, all }) };
}

/** A large body on each of these connections. */
async function startApp(bodyBudget: BodyBudget, routes: Pick<RouteMount, 'routes' | 'endpoints'>) {
  const app = createHttpApp({
    log: createLog('silent'),
    metrics: createMetrics(),
    world: realWorld,
    mounts: [{ path: '/', errors: 'problem', ...routes }],
    maxBodyBytes: BODY_BYTES,
    bodyBudget,
    checkReady: async () => {},
  });
  const http = await listenHttp({ host: '127.0.0.1', port: 0 });
  return { http, app };
}

const SENT = Buffer.from(
  `POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: ${BODY_BYTES}\r\n\r\n${'b'.repeat(BODY_BYTES)}`,
);

test('many large bodies are read in turns, few in a turn of the event loop', async () => {
  const reads = countReads();
  const { promise: written, resolve: onWritten } = Promise.withResolvers<void>();
  const answer: Endpoint['answer'] = async (call) => {
    // Bodies that wait for their client would all be read in the turn in which it sends.
    await written;
    return replyJson({ length: (await call.bytes()).length });
  };
  const endpoints: Endpoint[] = [{ method: 'POST', path: '/length', answer }];
  const { http, app } = await startApp(reads.bodyBudget, { routes: createRoutes(), endpoints });
  http.serve(app);
  const sender = new Worker(new URL('../../../test/support/network/send-bodies.ts', import.meta.url), {
    workerData: { port: http.port, count: BODIES, bytes: SENT },
  });
  assert.deepEqual(await once(sender, 'message'), ['written']);
  onWritten();
  const [answered] = (await once(sender, 'message')) as [number];
  const { most, all } = reads.read();
  reads.stop();
  await http.drain(0);
  assert.equal(answered, BODIES);
  assert.ok(all > 4 * BODIES, `${all} parts`);
  assert.ok(most <= READS_IN_A_TURN, `${most} parts in a turn`);
});

/** The bytes of a single read of the socket. */
const AHEAD_BYTES = 65_536;

test('a body that waits for its turn on a route is read no further', async () => {
  const budget = createBodyBudget();
  const { promise: waits, resolve: wait } = Promise.withResolvers<() => void>();
  const counted: number[] = [];
  const bodyBudget: BodyBudget = {
    open(network, giveWay) {
      const body = budget.open(network, giveWay);
      const add = (bytes: Uint8Array): void => {
        counted.push(bytes.length);
        body.add(bytes);
      };
      return { ...body, add, waitForTurn: (goOn) => (counted.length === 1 ? wait(goOn) : body.waitForTurn(goOn)) };
    },
  };
  const routes = createRoutes();
  routes.post('/length', async (c) => c.json({ length: (await c.req.text()).length }));
  const { http, app } = await startApp(bodyBudget, { routes });
  const sockets: Socket[] = [];
  http.serve((incoming, outgoing) => {
    sockets.push(incoming.socket);
    app(incoming, outgoing);
  });
  const client = connect(http.port, '127.0.0.1').on('error', () => {});
  const answer = once(client, 'data');
  client.write(SENT);
  const goOn = await waits;
  for (let turn = 0; turn < 20; turn++) await fetch(`${http.url}/healthz`);
  const ahead = sockets[0]!.bytesRead - counted[0]!;
  goOn();
  assert.match(String((await answer)[0]), new RegExp(`"length":${BODY_BYTES}`));
  client.destroy();
  await http.drain(0);
  assert.ok(ahead <= AHEAD_BYTES, `${ahead} bytes ahead`);
});

for (const bytes of [10, 60_000])
  test(`a body of ${bytes} bytes that came before its route asked for it leaves its connection open`, async () => {
    const routes = createRoutes();
    routes.post('/length', async (c) => {
      for (let turn = 0; turn < 5; turn++) await nextTurn();
      return c.json({ length: (await c.req.text()).length });
    });
    const { http, app } = await startApp(createBodyBudget(), { routes });
    http.serve(app);
    const client = connect(http.port, '127.0.0.1');
    const head = `POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: ${bytes}\r\n\r\n`;
    try {
      for (let request = 0; request < 3; request++) {
        client.write(head + 'b'.repeat(bytes));
        const [answer] = await once(client, 'data', { signal: AbortSignal.timeout(120_000) });
        assert.match(String(answer), new RegExp(`"length":${bytes}\\b`));
      }
    } finally {
      client.destroy();
      await http.drain(0);
    }
  });
