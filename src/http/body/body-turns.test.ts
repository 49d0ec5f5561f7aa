import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { createLog } from '../../telemetry/log.ts';
import { createMetrics } from '../../telemetry/metrics.ts';
import { realWorld } from '../../world.ts';
import { replyJson } from '../endpoint.ts';
import { createHttpApp } from '../http-app.ts';
import { listenHttp } from '../http-server.ts';
import type { RouteMount } from '../mount.ts';
import { createRoutes } from '../routes.ts';
import { type BodyBudget, createBodyBudget } from './body-budget.ts';

const BODIES = 48;
const BODY_BYTES = 1_000_000;
const READS_IN_A_TURN = 16;

/** Counts the parts after the first of each body, turn by turn of the event loop. */
function countReads() {
  const budget = createBodyBudget();
  let [inTurn, most, all] = [0, 0, 0];
  let next: NodeJS.Immediate;
  const endTurn = (): void => {
    most = Math.max(most, inTurn);
    inTurn = 0;
    next = setImmediate(endTurn);
  };
  endTurn();
  const bodyBudget: BodyBudget = {
    open(network, giveWay) {
      const body = budget.open(network, giveWay);
      let isFirst = true;
      const add = (bytes: Uint8Array): void => {
        if (!isFirst) inTurn += 1;
        isFirst = false;
        all += 1;
        body.add(bytes);
      };
      return { ...body, add };
    },
  };
  return { bodyBudget, stop: () => clearImmediate(next), read: () => ({ most, all }) };
}

test('many large bodies are read in turns, few in a turn of the event loop', async () => {
  const reads = countReads();
  const mount: RouteMount = {
    path: '/',
    errors: 'problem',
    routes: createRoutes(),
    endpoints: [
      { method: 'POST', path: '/length', answer: async (call) => replyJson({ length: (await call.bytes()).length }) },
    ],
  };
  const app = createHttpApp({
    log: createLog('silent'),
    metrics: createMetrics(),
    world: realWorld,
    mounts: [mount],
    maxBodyBytes: BODY_BYTES,
    bodyBudget: reads.bodyBudget,
    checkReady: async () => {},
  });
  const http = await listenHttp({ host: '127.0.0.1', port: 0 });
  http.serve(app);
  const head = `POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: ${BODY_BYTES}\r\n\r\n`;
  const sent = Buffer.from(head + 'b'.repeat(BODY_BYTES));
  const sender = new Worker(new URL('../../../test/support/send-bodies.ts', import.meta.url), {
    workerData: { port: http.port, count: BODIES, bytes: sent },
  });
  const [answered] = (await once(sender, 'message')) as [number];
  const { most, all } = reads.read();
  reads.stop();
  await http.drain(0);
  assert.equal(answered, BODIES);
  assert.ok(all > 4 * BODIES, `${all} parts`);
  assert.ok(most <= READS_IN_A_TURN, `${most} parts in a turn`);
});
