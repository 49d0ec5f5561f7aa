/** The floor with Hono: the same answer as the bare server's, by way of a Request, a route and a Response. */
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { serveParent } from './protocol.ts';

const ANSWER = { active: true, access_token: 'a'.repeat(55), refresh_token: 'b'.repeat(55), scope: 'all_user' };

const app = new Hono();
for (const path of ['/token', '/introspect'])
  app.post(path, async (c) => c.json(ANSWER, 200, { 'X-Read': String((await c.req.text()).length) }));
app.get('/user', (c) => c.json(ANSWER, 200, { 'X-Read': '0' }));

const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, (address: AddressInfo) => {
  serveParent({
    ready: {
      port: address.port,
      clientId: 'bench',
      clientSecret: 'secret',
      tokenPath: '/token',
      introspectPath: '/introspect',
      userPath: '/user',
    },
    prepare: async (_kind, count) => Array.from({ length: count }, (_, index) => `secret-${index}`),
  });
});
server.unref();
