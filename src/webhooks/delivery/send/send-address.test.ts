import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startDnsServer } from '../../../../test/support/network/dns-server.ts';
import { startRawReceiver } from '../../../../test/support/network/raw-receiver.ts';
import { startReceiver } from '../../../../test/support/network/receiver.ts';
import { FORBIDDEN_TARGETS } from '../../../../test/support/webhooks/forbidden-targets.ts';
import { deliveryTo, openSender } from '../../../../test/support/webhooks/test-sender.ts';

for (const [why, url] of FORBIDDEN_TARGETS)
  test(`send() blocks ${why}: ${JSON.stringify(url)}`, async () => {
    await using sender = openSender({ allowCidrs: [] });
    const report = await sender.send(deliveryTo(url));
    assert.deepEqual(report.outcome, { kind: 'blocked' });
    assert.equal(report.remoteAddress, null);
    assert.equal(sender.connections, 0);
  });

test('a name is resolved, and the connection goes to its address', async () => {
  await using dns = await startDnsServer();
  await using receiver = await startReceiver();
  const { port } = new URL(receiver.url);
  dns.records.set('hooks.example.com', ['127.0.0.1']);
  await using sender = openSender({ resolver: dns.resolver });
  const report = await sender.send(deliveryTo(`http://hooks.example.com:${port}/x`));
  assert.equal(report.status, 200);
  assert.equal(receiver.received[0]?.headers.host, `hooks.example.com:${port}`);
});

test('names of one network are sent to where the configuration opens names and ranges, and blocked elsewhere', async (t) => {
  await using dns = await startDnsServer();
  await using receiver = await startReceiver();
  const { port } = new URL(receiver.url);
  dns.records.set('jenkins', ['127.0.0.1']);
  dns.records.set('ci.default.svc.cluster.local', ['127.0.0.1']);
  const folder = mkdtempSync(join(tmpdir(), 'trivet-hosts-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'hosts'), '127.0.0.1 extra-host\n');
  const names = {
    resolver: dns.resolver,
    hostsFile: join(folder, 'hosts'),
    allowHosts: ['jenkins', '*.local', 'extra-host'],
  };
  await using opened = openSender(names);
  await using closed = openSender({ ...names, allowHosts: [] });
  for (const name of ['jenkins', 'ci.default.svc.cluster.local', 'extra-host']) {
    const report = await opened.send(deliveryTo(`http://${name}:${port}/`));
    assert.equal(report.status, 200, name);
    assert.deepEqual((await closed.send(deliveryTo(`http://${name}:${port}/`))).outcome, { kind: 'blocked' });
  }
  assert.deepEqual(
    receiver.received.map(({ headers }) => headers.host?.split(':')[0]),
    ['jenkins', 'ci.default.svc.cluster.local', 'extra-host'],
  );
});

test('one forbidden answer of DNS blocks, with no connection', async () => {
  await using dns = await startDnsServer();
  await using receiver = await startRawReceiver(() => {});
  await using sender = openSender({ resolver: dns.resolver });
  for (const addresses of [['127.0.0.1', '10.0.0.1'], ['127.0.0.1', 'fd00::1'], ['169.254.169.254']]) {
    dns.records.set('mixed.example.com', addresses);
    const report = await sender.send(deliveryTo(`http://mixed.example.com:${receiver.port}/`));
    assert.deepEqual(report.outcome, { kind: 'blocked' });
  }
  assert.equal(receiver.connections, 0);
});

test('a name that resolves to another address between attempts is blocked, although a connection was kept', async () => {
  await using dns = await startDnsServer();
  await using receiver = await startReceiver();
  const { port } = new URL(receiver.url);
  dns.records.set('rebind.example.com', ['127.0.0.1']);
  await using sender = openSender({ resolver: dns.resolver });
  assert.equal((await sender.send(deliveryTo(`http://rebind.example.com:${port}/`))).status, 200);
  dns.records.set('rebind.example.com', ['10.0.0.1']);
  assert.deepEqual((await sender.send(deliveryTo(`http://rebind.example.com:${port}/`))).outcome, { kind: 'blocked' });
  assert.equal(receiver.received.length, 1);
});

test('a name that resolves to another address between check and connection changes nothing: it is resolved once', async () => {
  await using dns = await startDnsServer();
  await using receiver = await startReceiver();
  const { port } = new URL(receiver.url);
  dns.records.set('once.example.com', ['127.0.0.1']);
  await using sender = openSender({ resolver: dns.resolver });
  assert.equal((await sender.send(deliveryTo(`http://once.example.com:${port}/`))).remoteAddress, '127.0.0.1');
  assert.equal(dns.questions, 2, 'one question for A, one for AAAA');
});

test('a name that does not exist is unreachable, not blocked', async () => {
  await using dns = await startDnsServer();
  await using sender = openSender({ resolver: dns.resolver });
  const report = await sender.send(deliveryTo('http://missing.example.com/'));
  assert.deepEqual(report.outcome, { kind: 'unreachable', reason: 'no such name', stage: 'connect' });
});

test('an address that drops packets does not keep a delivery from the next address of the name', async () => {
  await using undo = new AsyncDisposableStack();
  const port = await startSilentAddress(undo);
  const server = createServer((request, response) => void request.resume().on('end', () => response.end('ok')));
  server.listen(port, '127.0.0.2');
  await once(server, 'listening');
  undo.defer(() => server.close().closeAllConnections());
  const addresses = { resolve4: async () => ['127.0.0.1', '127.0.0.2'], resolve6: async () => [] };
  await using sender = openSender({ resolver: addresses });
  const report = await sender.send(deliveryTo(`http://two.example.com:${port}/`, 30_000));
  assert.deepEqual([report.status, report.remoteAddress], [200, '127.0.0.2']);
});

/** A port of 127.0.0.1 whose system does not answer further connections: its process accepts none, and its queue is full. */
async function startSilentAddress(undo: AsyncDisposableStack): Promise<number> {
  const listen = `const server = require('node:net').createServer();
    server.listen({ host: '127.0.0.1', port: 0, backlog: 1 }, () => console.log(server.address().port))`;
  const child = spawn(process.execPath, ['-e', listen], { stdio: ['ignore', 'pipe', 'inherit'] });
  undo.defer(() => void child.kill('SIGKILL'));
  const [text] = (await once(child.stdout, 'data')) as [Buffer];
  child.kill('SIGSTOP');
  const port = Number(text.toString());
  for (let count = 0; count < 2; count += 1) {
    const socket = connect(port, '127.0.0.1');
    undo.defer(() => void socket.destroy());
    await once(socket, 'connect');
  }
  return port;
}
