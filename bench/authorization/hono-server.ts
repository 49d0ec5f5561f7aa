/** The floor with Hono: the same answer as the bare server's, through a Request, a route and a Response. */
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { FLOOR_ANSWER, serveFloor } from './floor.ts';

const app = new Hono();
for (const path of ['/token', '/introspect'])
  app.post(path, async (c) => c.json(FLOOR_ANSWER, 200, { 'X-Read': String((await c.req.text()).length) }));
app.get('/user', (c) => c.json(FLOOR_ANSWER, 200, { 'X-Read': '0' }));

const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, (address: AddressInfo) =>
  serveFloor(address.port),
);
server.unref();
