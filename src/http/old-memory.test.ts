/** Requests leave few objects in the old generation, or the whole heap would be collected more often under load. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { measureOldBytes } from '../../test/support/basics/old-memory.ts';
import { listenHttp } from './http-server.ts';

const REQUESTS = 2000;
const MAX_BYTES_PER_REQUEST = 450;

/** Sends this many requests one after the other on one connection. */
const CALLER = `
  const { Agent, get } = require('node:http');
  const { parentPort, workerData } = require('node:worker_threads');
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const call = (count) => count === 0
    ? parentPort.postMessage('done')
    : get({ port: workerData, agent }, (answer) => answer.resume().on('end', () => call(count - 1)));
  parentPort.on('message', call);
`;

test('requests on a kept connection leave little in old memory', async () => {
  const http = await listenHttp({ host: '127.0.0.1', port: 0 });
  http.serve((_, outgoing) => outgoing.end('answer'));
  const caller = new Worker(CALLER, { eval: true, workerData: http.port });
  const bytes = await measureOldBytes(async () => {
    caller.postMessage(REQUESTS);
    await once(caller, 'message');
  });
  await caller.terminate();
  await http.drain(0);
  assert.ok(bytes < MAX_BYTES_PER_REQUEST * REQUESTS, `${bytes / REQUESTS} bytes a request`);
});
