import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { replayDeliveries, sendAllWaiting } from '../webhooks/administration/delivery-operations.ts';
import { removeRepository, showRepository } from '../webhooks/administration/repository-operations.ts';
import { callWithin, readServiceTimeMs } from './call-service.ts';
import type { AnyOperation } from './operation.ts';

const MACHINE = { nowMs: () => Date.UTC(2030, 0, 1) };

test('readServiceTimeMs() reads the time of the service, and that of the machine if an answer names none', async (t) => {
  const dates = ['Mon, 02 Mar 2026 10:00:00 GMT', undefined];
  const server = createServer((_, response) => {
    response.sendDate = false;
    const date = dates.shift();
    if (date !== undefined) response.setHeader('Date', date);
    response.end();
  });
  t.after(() => server.close());
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  assert.equal(await readServiceTimeMs(url, MACHINE), Date.UTC(2026, 2, 2, 10));
  assert.equal(await readServiceTimeMs(url, MACHINE), MACHINE.nowMs());
});

test('callWithin() says of a service that does not answer in time that it may still be at work', async (t) => {
  const server = createServer(() => {});
  t.after(() => server.close().closeAllConnections());
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const input = { owner: 'ada', name: 'doors' };
  const call = (operation: AnyOperation) => callWithin(100, { url, token: 't' }, { operation, input });
  const message = `${url} did not answer within 0.1 s`;
  const advice = 'It may still be at work: look at what has changed before you try again';
  await assert.rejects(call(removeRepository), { code: 'unavailable', message: `${message}. ${advice}` });
  await assert.rejects(call(showRepository), { code: 'unavailable', message });
});

test('operations that may be at work for minutes are waited for', () => {
  for (const { takesLong, name } of [removeRepository, replayDeliveries, sendAllWaiting]) assert.ok(takesLong, name);
});
