import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startDnsServer } from '../../../test/support/network/dns-server.ts';
import { createNameResolver } from './name-resolver.ts';

test('createNameResolver() finds a name whose answer takes long, after many that came at once', async () => {
  await using dns = await startDnsServer();
  dns.records.set('quick.example.com', ['192.0.2.1']);
  dns.records.set('slow.example.com', ['192.0.2.2', '2001:db8::2']);
  dns.delays.set('slow.example.com', 1600);
  const names = createNameResolver({ timeoutMs: 60_000, servers: dns.servers });
  for (let count = 0; count < 50; count += 1) await names.resolve4('quick.example.com');
  const found = await Promise.all([names.resolve4('slow.example.com'), names.resolve6('slow.example.com')]);
  assert.deepEqual(found, [['192.0.2.2'], ['2001:db8::2']]);
});

test('createNameResolver() asks again when an answer is lost', async () => {
  await using dns = await startDnsServer();
  dns.records.set('quick.example.com', ['192.0.2.1']);
  const names = createNameResolver({ timeoutMs: 60_000, servers: dns.servers });
  for (let count = 0; count < 50; count += 1) await names.resolve4('quick.example.com');
  dns.loseNext();
  assert.deepEqual(await names.resolve4('quick.example.com'), ['192.0.2.1']);
});

test('createNameResolver() asks once for a name that does not exist', async () => {
  await using dns = await startDnsServer();
  const names = createNameResolver({ timeoutMs: 60_000, servers: dns.servers });
  await assert.rejects(names.resolve4('missing.example.com'), { code: 'ENOTFOUND' });
  assert.equal(dns.questions, 1);
});
