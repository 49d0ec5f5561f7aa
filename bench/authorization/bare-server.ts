/** The floor: what Node itself spends on reading a request and answering it, with nothing in between. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serveParent } from './protocol.ts';

const ANSWER = JSON.stringify({
  active: true,
  access_token: 'a'.repeat(55),
  refresh_token: 'b'.repeat(55),
  scope: 'all_user',
});

const server = createServer((request, response) => {
  let body = '';
  request.setEncoding('utf8').on('data', (chunk: string) => {
    body += chunk;
  });
  request.on('end', () => {
    response.writeHead(200, {
      'Content-Type': 'application/json',
      'Content-Length': ANSWER.length,
      'X-Read': body.length,
    });
    response.end(ANSWER);
  });
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  serveParent({
    ready: {
      port,
      clientId: 'bench',
      clientSecret: 'secret',
      tokenPath: '/token',
      introspectPath: '/introspect',
      userPath: '/user',
    },
    prepare: async (_kind, count) => Array.from({ length: count }, (_, index) => `secret-${index}`),
  });
});
