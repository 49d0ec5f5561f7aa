import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { readServiceTimeMs } from './call-service.ts';

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
