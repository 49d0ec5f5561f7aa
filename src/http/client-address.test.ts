import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import ipaddr from 'ipaddr.js';
import type { Failure } from '../errors.ts';
import { createAddressReader } from './client-address.ts';

const cases: [title: string, trusted: string[], socket: string, forwarded: string | undefined, expected: string][] = [
  ['is that of the socket', [], '203.0.113.7', undefined, '203.0.113.7'],
  ['ignores the header of anybody', [], '203.0.113.7', '198.51.100.1', '203.0.113.7'],
  ['ignores the header of an untrusted proxy', ['10.0.0.0/8'], '203.0.113.7', '198.51.100.1', '203.0.113.7'],
  ['is what a trusted proxy says', ['10.0.0.0/8'], '10.1.2.3', '198.51.100.1', '198.51.100.1'],
  ['is not what the caller sent to the proxy', ['10.0.0.0/8'], '10.1.2.3', '1.1.1.1, 198.51.100.1', '198.51.100.1'],
  ['goes through a chain of proxies', ['10.0.0.0/8'], '10.1.2.3', '198.51.100.1, 10.9.9.9', '198.51.100.1'],
  ['stays with the proxy when the header is missing', ['10.0.0.0/8'], '10.1.2.3', undefined, '10.1.2.3'],
  ['stays with the proxy when the header is no address', ['10.1.2.3'], '10.1.2.3', 'unknown', '10.1.2.3'],
  ['knows a mapped IPv4 address', ['127.0.0.1'], '::ffff:127.0.0.1', '2001:DB8::1', '2001:db8::1'],
  ['leaves out the port of IPv4', ['10.0.0.0/8'], '10.1.2.3', '198.51.100.1:5000', '198.51.100.1'],
  ['leaves out the port of IPv6', ['10.0.0.0/8'], '10.1.2.3', '[2001:db8::1]:5000', '2001:db8::1'],
  ['knows IPv6 in brackets', ['10.0.0.0/8'], '10.1.2.3', '[2001:db8::1]', '2001:db8::1'],
  ['stays with the proxy when the port is no number', ['10.0.0.0/8'], '10.1.2.3', '198.51.100.1:http', '10.1.2.3'],
  ['goes on behind a proxy with a port', ['10.0.0.0/8'], '10.1.2.3', '198.51.100.1, 10.9.9.9:80', '198.51.100.1'],
  ['knows a range of mapped IPv4 addresses', ['::ffff:10.0.0.0/104'], '10.1.2.3', '198.51.100.1', '198.51.100.1'],
  ['is not in a range of mapped IPv4 addresses', ['::ffff:10.0.0.0/104'], '11.1.2.3', '198.51.100.1', '11.1.2.3'],
  ['knows IPv6 ranges', ['fd00::/8'], 'fd00::5', '198.51.100.1', '198.51.100.1'],
];

for (const [title, trusted, socket, forwarded, expected] of cases)
  test(`the address of a client ${title}`, () =>
    assert.equal(createAddressReader(trusted)({ remoteAddress: socket }, forwarded), expected));

test('a proxy that is no address is refused at the start', () => {
  for (const text of ['proxy.example', '10.0.0.0/99', ''])
    assert.throws(
      () => createAddressReader([text]),
      (error: Failure) => error.code === 'invalid',
    );
});

test('an address is parsed once, however many requests come from it', (t) => {
  const read = createAddressReader(['10.0.0.0/8', 'fd00::/8']);
  const parse = t.mock.method(ipaddr, 'process');
  const readAll = () => {
    for (const socket of ['203.0.113.7', '10.1.2.3', 'fd00::5'])
      read({ remoteAddress: socket }, '198.51.100.1, 2001:DB8::1');
  };
  readAll();
  const parsed = parse.mock.callCount();
  assert.ok(parsed > 0);
  for (let request = 0; request < 100; request += 1) readAll();
  assert.equal(parse.mock.callCount(), parsed);
});

test('addresses are distinguished however many there are', () => {
  const read = createAddressReader(['10.0.0.0/8']);
  for (let round = 0; round < 2; round += 1)
    for (let index = 0; index < 3000; index += 1) {
      const address = `203.0.${index >> 8}.${index & 255}`;
      assert.equal(read({ remoteAddress: '10.1.2.3' }, `x, ${address}`), address);
      assert.equal(read({ remoteAddress: address }, '198.51.100.1'), address);
    }
});

test('what is known of addresses does not keep the headers that they came in', () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const readLiveBytes = () => {
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const read = createAddressReader(['10.0.0.0/8']);
  const before = readLiveBytes();
  for (let index = 0; index < 999; index += 1) {
    const header = Buffer.from(`${'x'.repeat(15_000)}, 2001:db8::1:${index.toString(16)}`).toString();
    read({ remoteAddress: '10.1.2.3' }, header);
  }
  // The headers take 15 MB.
  assert.ok(readLiveBytes() - before < 5_000_000);
  assert.equal(read({ remoteAddress: '10.1.2.3' }, '2001:db8::1'), '2001:db8::1');
});
