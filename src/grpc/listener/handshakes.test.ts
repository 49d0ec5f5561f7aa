import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { mock, test } from 'node:test';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { createCertificate } from '../../../test/support/basics/certificate.ts';
import { echoMethods, startGrpcServer } from '../../../test/support/grpc/grpc-server.ts';
import { recordHello } from '../../../test/support/network/tls-records.ts';

/** The beginning of a ClientHello, without the rest. */
const BEGINNING_OF_HELLO = Buffer.from('160301020001000001fc0303', 'hex');

async function dial(port: number, localAddress = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {});
  await once(socket, 'connect');
  return socket.resume();
}

/** Connections are accepted in order, so all earlier ones are accepted once this one is. */
async function dialTls(port: number): Promise<TLSSocket> {
  const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] });
  await once(socket, 'secureConnect');
  return socket;
}

test('a TLS handshake ends ten seconds after its connection was accepted, whatever the client sends', async (t) => {
  await using running = await startGrpcServer(echoMethods, { tls: createCertificate() });
  const { port } = running.server;
  mock.timers.enable({ apis: ['setTimeout'] });
  t.after(() => mock.timers.reset());
  const [silent, dripping] = [await dial(port), await dial(port)];
  const honest = [await dialTls(port)];
  for (const byte of BEGINNING_OF_HELLO.subarray(0, 9)) {
    mock.timers.tick(1000);
    dripping.write(Buffer.of(byte));
    honest.push(await dialTls(port));
  }
  assert.deepEqual([silent.closed, dripping.closed], [false, false]);
  const closed = [once(silent, 'close'), once(dripping, 'close')];
  mock.timers.tick(1000);
  await Promise.all(closed);
  // Its handshake had ended in time; the last one is younger than the deadline of the preface.
  assert.equal(honest.at(-1)!.closed, false);
  for (const socket of honest) socket.destroy();
});

test('handshakes of a crowd that begin at once do not delay that of another network', async () => {
  await using running = await startGrpcServer(echoMethods, { tls: createCertificate() });
  const { port } = running.server;
  const hello = await recordHello();
  const crowd = await Promise.all(Array.from({ length: 50 }, () => dial(port)));
  const other = await dial(port, '127.0.0.2');
  const last = await dialTls(port);
  const answered: Socket[] = [];
  const answers = [...crowd, other].map(async (socket) => {
    await once(socket, 'data');
    answered.push(socket);
  });
  for (const socket of [...crowd, other]) socket.write(hello);
  await Promise.all(answers);
  assert.ok(answered.indexOf(other) <= 1, `answered as number ${answered.indexOf(other)}`);
  for (const socket of [...answered, last]) socket.destroy();
});

test('a client that renegotiates TLS 1.2 is cut off (RFC 9113, section 9.2.1)', async () => {
  await using running = await startGrpcServer(echoMethods, { tls: createCertificate() });
  const { port } = running.server;
  const host = { host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] };
  const socket = connectTls({ port, maxVersion: 'TLSv1.2', ...host }).on('error', () => {});
  await once(socket, 'secureConnect');
  const closed = once(socket.resume(), 'close');
  socket.renegotiate({}, () => {});
  await closed;
  assert.equal(running.logged.length, 0);
});

/** Two connections from one client port, one to each of two addresses of the server. */
async function dialTwice(port: number): Promise<Socket[]> {
  const first = await dial(port);
  const second = connect({ port, host: '127.0.0.2', localAddress: '127.0.0.1', localPort: first.localPort! });
  await once(
    second.on('error', () => {}),
    'connect',
  );
  return [first, second.resume()];
}

const ANY_ADDRESS = { skip: process.platform !== 'linux' && '127.0.0.2 is an address of Linux alone' };

test('handshakes from one port of a client to two addresses each have their deadline', ANY_ADDRESS, async (t) => {
  await using running = await startGrpcServer(echoMethods, { tls: createCertificate(), host: '0.0.0.0' });
  const { port } = running.server;
  mock.timers.enable({ apis: ['setTimeout'] });
  t.after(() => mock.timers.reset());
  const sockets = await dialTwice(port);
  const last = await dialTls(port);
  const closed = sockets.map((socket) => once(socket, 'close'));
  mock.timers.tick(10_000);
  await Promise.all(closed);
  last.destroy();
});

test('a drain ends handshakes from one port of a client to two addresses', ANY_ADDRESS, async () => {
  await using running = await startGrpcServer(echoMethods, { tls: createCertificate(), host: '0.0.0.0' });
  const { server } = running;
  const sockets = await dialTwice(server.port);
  const last = await dialTls(server.port);
  const closed = sockets.map((socket) => once(socket, 'close'));
  last.destroy();
  await Promise.all([...closed, server.drain(60_000)]);
});

test('what does not begin as TLS is cut off without an answer', async () => {
  await using running = await startGrpcServer(echoMethods, { tls: createCertificate() });
  const plain = connect(running.server.port, '127.0.0.1').on('error', () => {});
  const answers: Buffer[] = [];
  plain.on('data', (part) => answers.push(part));
  plain.write('GET / HTTP/1.1\r\n\r\n');
  await once(plain, 'close');
  assert.equal(answers.length, 0);
});

for (const [cipher, isTaken] of [
  ['AES128-GCM-SHA256', false],
  ['ECDHE-RSA-AES128-SHA256', false],
  ['ECDHE-RSA-AES128-GCM-SHA256', true],
  ['ECDHE-RSA-CHACHA20-POLY1305', true],
] as const)
  test(`TLS 1.2 with ${cipher} is ${isTaken ? 'taken' : 'refused'} (RFC 9113, section 9.2.2)`, async () => {
    await using running = await startGrpcServer(echoMethods, { tls: createCertificate('rsa') });
    const host = { host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] };
    const options = { maxVersion: 'TLSv1.2', ciphers: cipher } as const;
    const socket = connectTls({ port: running.server.port, ...host, ...options });
    const connected = once(socket, 'secureConnect').then(
      () => true,
      () => false,
    );
    assert.equal(await connected, isTaken);
    socket.destroy();
  });

test('a client that fails with many certificates waits for its next handshake, and no other network does', async () => {
  const { certFile, keyFile } = createCertificate();
  await using running = await startGrpcServer(echoMethods, { tls: { certFile, keyFile, clientCaFile: certFile } });
  const key = readFileSync(keyFile);
  const cert = readFileSync(certFile);
  const shake = async (chain: Buffer, localAddress: string, signal?: AbortSignal): Promise<boolean> => {
    const options = { port: running.server.port, host: '127.0.0.1', localAddress, key, cert: chain };
    const socket = connectTls({ ...options, rejectUnauthorized: false, ALPNProtocols: ['h2'] }).on('error', () => {});
    signal?.addEventListener('abort', () => socket.destroy());
    // A server refuses a client's certificate after the client has ended its handshake, so the first event decides.
    const isTaken = once(socket, 'data').then(() => true);
    const isClosed = once(socket, 'close').then(() => false);
    const taken = await Promise.race([isTaken, isClosed]);
    socket.destroy();
    return taken;
  };
  const other = createCertificate();
  const untrusted = readFileSync(other.certFile);
  const refused = connectTls({
    port: running.server.port,
    host: '127.0.0.1',
    key: readFileSync(other.keyFile),
    cert: Buffer.concat(Array.from({ length: 150 }, () => untrusted)),
    rejectUnauthorized: false,
    ALPNProtocols: ['h2'],
  }).on('error', () => {});
  await once(refused, 'close');
  assert.equal(await shake(cert, '127.0.0.2'), true);
  assert.equal(await shake(cert, '127.0.0.1', AbortSignal.timeout(500)), false);
});
