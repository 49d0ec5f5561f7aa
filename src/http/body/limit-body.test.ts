/** When a request ends in a way that its handler does not expect, its body leaves the budget and its connection stays usable or closes. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, test } from 'node:test';
import { Failure } from '../../errors.ts';
import { createLog } from '../../telemetry/log.ts';
import { createMetrics } from '../../telemetry/metrics.ts';
import { realWorld } from '../../world.ts';
import { createHttpApp } from '../http-app.ts';
import { listenHttp } from '../http-server.ts';
import { createRoutes } from '../routes.ts';
import { type BodyBudget, createBodyBudget } from './body-budget.ts';

const BODY_BYTES = 2_000_000;

/**
 * `POST /length` answers with the length of its body, `POST /released` with the forms of the body that are kept after its release.
 * Each connection has two minutes for an answer.
 */
async function startServer(bodyBudget: BodyBudget): Promise<() => Socket> {
  const routes = createRoutes();
  routes.post('/length', async (c) => c.json({ length: (await c.req.text()).length }));
  routes.post('/released', async (c) => {
    await c.req.text();
    c.get('releaseBody')?.();
    return c.json(Object.keys(c.req.bodyCache));
  });
  const app = createHttpApp({
    log: createLog('silent'),
    metrics: createMetrics(),
    world: realWorld,
    mounts: [{ path: '/', errors: 'problem', routes }],
    maxBodyBytes: BODY_BYTES,
    bodyBudget,
    checkReady: async () => {},
  });
  const http = await listenHttp({ host: '127.0.0.1', port: 0 });
  http.serve(app);
  const clients: Socket[] = [];
  after(async () => {
    for (const client of clients) client.destroy();
    await http.drain(0);
  });
  return () => {
    const client = connect(http.port, '127.0.0.1').on('error', () => {});
    clients.push(client);
    return client;
  };
}

async function readAnswer(client: Socket): Promise<string> {
  const [answer] = (await once(client, 'data', { signal: AbortSignal.timeout(120_000) })) as [Buffer];
  return String(answer);
}

for (const [line, status] of [
  ['TRACE /length HTTP/1.1', 405],
  ['POST http://user:password@x/length HTTP/1.1', 400],
  ['POST /length HTTP/1.1', 200],
] as const)
  test(`every body that is counted is closed: ${line}`, async () => {
    const budget = createBodyBudget();
    const open = new Set<object>();
    const bodyBudget: BodyBudget = {
      open(network, giveWay) {
        const body = budget.open(network, giveWay);
        open.add(body);
        const close = (): void => {
          open.delete(body);
          body.close();
        };
        return { ...body, close };
      },
    };
    const client = (await startServer(bodyBudget))();
    client.write(`${line}\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nb\r\n0\r\n\r\n`);
    assert.match(await readAnswer(client), new RegExp(`^HTTP/1.1 ${status} `));
    assert.equal(open.size, 0);
  });

test('the rest of a body that gave way while it waited for its turn is read, and the connection goes on', async () => {
  const budget = createBodyBudget();
  const { promise: givenWay, resolve: tellGivenWay } = Promise.withResolvers<void>();
  let isFirst = true;
  const bodyBudget: BodyBudget = {
    open(network, giveWay) {
      const body = budget.open(network, giveWay);
      const waitForTurn = (goOn: () => void): void => {
        // Its turn comes after the handler has failed, which discards the rest.
        if (isFirst) setImmediate(() => setImmediate(() => setImmediate(() => body.waitForTurn(goOn))));
        else body.waitForTurn(goOn);
        if (isFirst) giveWay(new Failure('unavailable', 'no room'));
        isFirst = false;
        tellGivenWay();
      };
      return { ...body, waitForTurn };
    },
  };
  const client = (await startServer(bodyBudget))();
  client.write(`POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: ${BODY_BYTES}\r\n\r\n${'b'.repeat(1000)}`);
  await givenWay;
  const answer = readAnswer(client);
  client.write('b'.repeat(BODY_BYTES - 1000));
  assert.match(await answer, /^HTTP\/1.1 503 /);
  client.write('POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nb');
  assert.match(await readAnswer(client), /"length":1\b/);
});

test('a body that is released is kept in memory no longer', async () => {
  const client = (await startServer(createBodyBudget()))();
  client.write('POST /released HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nb\r\n0\r\n\r\n');
  assert.match(await readAnswer(client), /^HTTP\/1.1 200 .*\r\n\r\n\[\]$/s);
});
