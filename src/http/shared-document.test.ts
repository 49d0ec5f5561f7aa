/** A public document is one copy in memory, however many clients request it and do not read it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { z } from '@hono/zod-openapi';
import { createReferenceRoutes, REFERENCE_PATH } from '../api-reference/reference-routes.ts';
import { createLog } from '../telemetry/log.ts';
import { createMetrics } from '../telemetry/metrics.ts';
import { realWorld } from '../world.ts';
import { createHttpApp } from './http-app.ts';
import { listenHttp } from './http-server.ts';
import { createRoutes } from './routes.ts';

const CLIENTS = 30;
/** Larger than the bytes of an unread answer that the kernel buffers. */
const DESCRIPTION = 'a'.repeat(8_000_000);

async function askUnread(port: number, path = '/openapi.json'): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
  await once(socket, 'readable');
  return socket;
}

for (const path of ['/openapi.json', REFERENCE_PATH])
  test(`answers of ${path} that are not read share their bytes`, async () => {
    const routes = createRoutes();
    const responses = { 200: { description: DESCRIPTION } };
    routes.openapi({ method: 'get', path: '/a', request: { query: z.object({}) }, responses }, (c) => c.text(''));
    const http = await listenHttp({ host: '127.0.0.1', port: 0 });
    const mounts = [{ path: '/x', errors: 'problem' as const, routes }];
    const log = createLog('silent');
    const checkReady = async (): Promise<void> => {};
    http.serve(
      createHttpApp({
        mounts,
        log,
        metrics: createMetrics(),
        world: realWorld,
        maxBodyBytes: 1024,
        checkReady,
        createReference: (readApi) => createReferenceRoutes(readApi, http.url),
      }),
    );
    const clients = [await askUnread(http.port, path)];
    const before = process.memoryUsage().rss;
    for (let client = 1; client < CLIENTS; client++) clients.push(await askUnread(http.port, path));
    const grown = process.memoryUsage().rss - before;
    for (const client of clients) client.destroy();
    await http.drain(0);
    assert.ok(grown < (CLIENTS * DESCRIPTION.length) / 2, `${grown} bytes more`);
  });
