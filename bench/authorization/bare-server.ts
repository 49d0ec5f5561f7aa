/** The floor: the time that Node itself takes to read a request and answer it. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { FLOOR_ANSWER, serveFloor } from './floor.ts';

const ANSWER = JSON.stringify(FLOOR_ANSWER);

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
  serveFloor((server.address() as AddressInfo).port);
});
