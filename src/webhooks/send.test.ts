import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { startDnsServer } from '../../test/support/dns-server.ts';
import { FORBIDDEN_TARGETS } from '../../test/support/forbidden-targets.ts';
import { onRequest, startRawReceiver } from '../../test/support/raw-receiver.ts';
import { startReceiver } from '../../test/support/receiver.ts';
import { createAddressGuard, type NameResolver } from './address-guard.ts';
import { createSender, type Sender, type SenderOptions } from './send.ts';
import type { SendReport } from './send-report.ts';

const LOOPBACK = ['127.0.0.0/8'];
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

interface Setting {
  readonly allowCidrs?: readonly string[];
  readonly resolver?: NameResolver;
  readonly ca?: string;
  readonly onDoubt?: SenderOptions['onDoubt'];
}

interface TestSender extends Sender, AsyncDisposable {
  /** As if connections had rested for long enough to be used again. */
  letRest(): void;
}

function openSender({ allowCidrs = LOOPBACK, resolver, ca, onDoubt }: Setting = {}): TestSender {
  const guard = createAddressGuard({ allowCidrs, ...(resolver && { resolver }) });
  let clockMs = 0;
  const times = { nowMs: Date.now, monotonicMs: () => clockMs };
  const sender = createSender({ guard, ...times, ca, ...(onDoubt && { onDoubt }) });
  const letRest = () => {
    clockMs += 1000;
  };
  return Object.assign(sender, { letRest, [Symbol.asyncDispose]: () => sender.close() });
}

const request = (url: string, deadlineMs = 5000) => ({
  deliveryId: 1,
  url,
  headers: { 'Content-Type': 'application/json', 'X-Test': 'yes' },
  body: Buffer.from('{"a":1}'),
  deadlineMs,
});

/** One attempt against a receiver that does what it wants with the connection. */
async function sendTo(onConnection: (socket: Socket) => void, deadlineMs?: number): Promise<SendReport> {
  await using receiver = await startRawReceiver(onConnection);
  await using sender = openSender();
  return await sender.send(request(receiver.url, deadlineMs));
}

const answerWith = (text: string | Buffer) => (socket: Socket) => onRequest(socket, () => void socket.write(text));

test('an accepted delivery reports status, headers, body, address and times', async () => {
  await using receiver = await startReceiver((_, response) => {
    response.setHeader('X-Answer', 'a');
    response.end('thanks');
  });
  await using sender = openSender();
  const report = await sender.send(request(`${receiver.url}?token=a%20b`));
  assert.deepEqual(report.outcome, { kind: 'accepted', status: 200 });
  assert.equal(Buffer.from(report.responseBody).toString(), 'thanks');
  assert.equal(report.responseHeaders['x-answer'], 'a');
  assert.equal(report.remoteAddress, '127.0.0.1');
  assert.notEqual(report.timingsMs.connect, null);
  assert.equal(receiver.received[0]?.path, '/hook?token=a%20b');
  sender.letRest();
  const again = await sender.send(request(receiver.url));
  assert.equal(again.timingsMs.connect, null, 'the connection was kept');
  assert.equal(receiver.received[0]?.remotePort, receiver.received[1]?.remotePort);
});

test('headers that belong to the connection cannot be set', async () => {
  await using receiver = await startReceiver();
  await using sender = openSender();
  const harmful = { Host: 'internal', Connection: 'upgrade', Upgrade: 'websocket', 'Transfer-Encoding': 'chunked' };
  const { headers } = request(receiver.url);
  await sender.send({ ...request(receiver.url), headers: { ...headers, ...harmful } });
  const got = receiver.received[0]?.headers;
  assert.equal(got?.host, new URL(receiver.url).host);
  assert.equal(got?.upgrade, undefined);
  assert.equal(got?.['transfer-encoding'], undefined);
  assert.equal(got?.['x-test'], 'yes');
});

const statuses: [status: string, kind: string][] = [
  ['204 No Content', 'accepted'],
  ['301 Moved', 'refused'],
  ['410 Gone', 'gone'],
  ['500 Broken', 'refused'],
  ['999 Odd', 'refused'],
];
for (const [status, kind] of statuses)
  test(`an answer of ${status} is ${kind}`, async () => {
    const report = await sendTo(answerWith(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\n\r\n`));
    assert.equal(report.outcome.kind, kind);
    assert.equal(report.status, Number.parseInt(status, 10));
  });

test('a redirect to a private address is not followed', async () => {
  await using secret = await startReceiver();
  const report = await sendTo(answerWith(`HTTP/1.1 307 Look\r\nLocation: ${secret.url}\r\nContent-Length: 0\r\n\r\n`));
  assert.deepEqual(report.outcome.kind, 'refused');
  assert.equal(secret.received.length, 0);
});

const retryAfters: [value: string, expected: number | undefined][] = [
  ['120', 120_000],
  ['99999999999999999999999', undefined],
  ['-1', undefined],
  ['Infinity', undefined],
];
for (const [value, expected] of retryAfters)
  test(`a Retry-After of ${value} is read as ${expected}`, async () => {
    const report = await sendTo(answerWith(`HTTP/1.1 503 Busy\r\nRetry-After: ${value}\r\nContent-Length: 0\r\n\r\n`));
    assert.deepEqual(report.outcome, { kind: 'refused', status: 503, retryAfterMs: expected });
  });

const hostile: [title: string, onConnection: (socket: Socket) => void, reason: RegExp][] = [
  ['accepts and stays silent', () => {}, /response timeout/],
  ['never reads', (socket) => socket.pause(), /response timeout/],
  ['sends its head slowly', (socket) => drip(socket, 'HTTP/1.1 200 OK\r\nX-Slow: '), /response timeout/],
  ['sends one byte at a time', (socket) => drip(socket, 'HTTP'), /response timeout|malformed/],
  [
    'floods with 103 answers',
    answerWith('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(10_000)),
    /too many interim/,
  ],
  ['sends a head of a megabyte', answerWith(`HTTP/1.1 200 OK\r\nX-Big: ${'a'.repeat(1_000_000)}\r\n\r\n`), /too large/],
  ['sends garbage', answerWith('\u0000\u0001 this is not HTTP \r\n\r\n'), /malformed/],
  ['resets the connection', (socket) => void socket.once('data', () => socket.resetAndDestroy()), /closed before/],
  ['closes without an answer', (socket) => void socket.once('data', () => socket.end()), /closed before/],
];
for (const [title, onConnection, reason] of hostile)
  test(`a receiver that ${title} is unreachable, and costs no more than the deadline`, async () => {
    const report = await sendTo(onConnection, 700);
    assert.equal(report.outcome.kind, 'unreachable');
    assert.equal(report.status, 0);
    assert.match(report.reason ?? '', reason);
  });

function drip(socket: Socket, start: string): void {
  socket.write(start);
  const timer = setInterval(() => socket.write('a'), 50);
  socket.on('close', () => clearInterval(timer));
}

test('nobody there is unreachable at once', async () => {
  const receiver = await startRawReceiver(() => {});
  await receiver[Symbol.asyncDispose]();
  await using sender = openSender();
  assert.equal((await sender.send(request(receiver.url))).reason, 'connection refused');
});

test('a receiver that never accepts is given up at the deadline', async () => {
  await using sender = openSender({ allowCidrs: ['192.0.2.0/24'] });
  const report = await sender.send(request('http://192.0.2.1:8080/', 500));
  assert.equal(report.outcome.kind, 'unreachable');
});

test('of an endless body 64 KiB are read and 8 KiB kept; the status decides', async () => {
  let written = 0;
  const report = await sendTo((socket) =>
    onRequest(socket, () => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      const chunk = `1000\r\n${'b'.repeat(0x1000)}\r\n`;
      const pour = (): void => {
        while (!socket.destroyed && socket.write(chunk)) written += 0x1000;
      };
      socket.on('drain', pour);
      pour();
    }),
  );
  assert.deepEqual(report.outcome, { kind: 'accepted', status: 200 });
  assert.equal(report.responseBody.byteLength, 8192);
  assert.ok(written < 100_000_000);
});

test('a body that trickles without end is cut at the deadline; the status decides', async () => {
  const report = await sendTo((socket) => {
    onRequest(socket, () => drip(socket, 'HTTP/1.1 500 No\r\nContent-Length: 100000\r\n\r\n'));
  }, 700);
  assert.deepEqual(report.outcome, { kind: 'refused', status: 500, retryAfterMs: undefined });
});

test('a gzip bomb stays as small as it came', async () => {
  const bomb = gzipSync(Buffer.alloc(50_000_000));
  const head = `HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${bomb.length}\r\n\r\n`;
  const report = await sendTo(answerWith(Buffer.concat([Buffer.from(head), bomb])));
  assert.equal(report.outcome.kind, 'accepted');
  assert.deepEqual(Buffer.from(report.responseBody), bomb.subarray(0, 8192));
});

test('a second answer in the same breath is not the next delivery’s', async () => {
  await using receiver = await startRawReceiver((socket, index) => {
    const answer = index === 0 ? OK + OK : 'HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n';
    onRequest(socket, () => void socket.write(answer));
  });
  await using sender = openSender();
  assert.equal((await sender.send(request(receiver.url))).status, 200);
  assert.equal((await sender.send(request(receiver.url))).status, 500);
  assert.equal(receiver.connections, 2);
});

test('a second answer that comes while the connection is idle ends it', async () => {
  const extra = Promise.withResolvers<void>();
  await using receiver = await startRawReceiver((socket, index) => {
    onRequest(socket, () => {
      socket.write(index === 0 ? OK : 'HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n');
      if (index === 0) setTimeout(() => socket.write(OK, () => setTimeout(extra.resolve, 50)), 50);
    });
  });
  await using sender = openSender();
  assert.equal((await sender.send(request(receiver.url))).status, 200);
  await extra.promise;
  sender.letRest();
  assert.equal((await sender.send(request(receiver.url))).status, 500);
  assert.equal(receiver.connections, 2);
});

test('a second answer that has come, but was not read yet, is not the next delivery’s', async () => {
  const sockets: Socket[] = [];
  await using receiver = await startRawReceiver((socket, index) => {
    sockets.push(socket);
    onRequest(socket, () => void socket.write(index === 0 ? OK : 'HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n'));
  });
  await using sender = openSender();
  assert.equal((await sender.send(request(receiver.url))).status, 200);
  sender.letRest();
  // It goes to the system at once, and nothing is read before the next request is asked for.
  sockets[0]?.write(OK);
  assert.equal((await sender.send(request(receiver.url))).status, 500);
  assert.equal(receiver.connections, 2);
});

test('a connection rests before it is used again', async () => {
  await using receiver = await startRawReceiver(answerWith(OK));
  await using sender = openSender();
  for (let count = 0; count < 2; count += 1) await sender.send(request(receiver.url));
  assert.equal(receiver.connections, 2, 'an answer may lag behind the one before');
  sender.letRest();
  for (let count = 0; count < 2; count += 1) await sender.send(request(receiver.url));
  assert.equal(receiver.connections, 2);
});

test('a connection on which interim answers came is not used again', async () => {
  const interim = 'HTTP/1.1 103 Early Hints\r\n\r\n';
  await using receiver = await startRawReceiver(answerWith(interim + OK));
  await using sender = openSender();
  for (let count = 0; count < 2; count += 1) {
    assert.equal((await sender.send(request(receiver.url))).status, 200);
    sender.letRest();
  }
  assert.equal(receiver.connections, 2);
});

test('a second answer that comes as late as to look like the next one’s makes that delivery doubtful', async () => {
  const doubted = Promise.withResolvers<readonly number[]>();
  await using receiver = await startRawReceiver((socket) => {
    onRequest(socket, (index) => {
      // The first answer, and while the second request waits, one more; then the true second one.
      if (index === 0) socket.write(OK);
      else socket.write(OK, () => setTimeout(() => socket.write('HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n'), 100));
    });
  });
  await using sender = openSender({ onDoubt: (ids) => doubted.resolve(ids) });
  await sender.send({ ...request(receiver.url), deliveryId: 11 });
  sender.letRest();
  assert.equal((await sender.send({ ...request(receiver.url), deliveryId: 12 })).status, 200);
  assert.deepEqual(await doubted.promise, [12]);
  await sender.send({ ...request(receiver.url), deliveryId: 13 });
  sender.letRest();
  await sender.send({ ...request(receiver.url), deliveryId: 14 });
  assert.equal(receiver.connections, 3, 'this origin gets no kept connections any more');
});

test('a kept connection that the receiver closed is no failed attempt', async () => {
  await using receiver = await startRawReceiver((socket) => {
    onRequest(socket, (index) => {
      if (index === 0) socket.write(OK);
      else socket.resetAndDestroy();
    });
  });
  await using sender = openSender();
  for (let count = 0; count < 5; count += 1) {
    assert.equal((await sender.send(request(receiver.url))).status, 200);
    sender.letRest();
  }
  assert.equal(receiver.connections, 5);
});

for (const [why, url] of FORBIDDEN_TARGETS)
  test(`send() blocks ${why}: ${JSON.stringify(url)}`, async () => {
    await using sender = openSender({ allowCidrs: [] });
    const report = await sender.send(request(url));
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
  const report = await sender.send(request(`http://hooks.example.com:${port}/x`));
  assert.equal(report.status, 200);
  assert.equal(receiver.received[0]?.headers.host, `hooks.example.com:${port}`);
});

test('one forbidden answer of DNS blocks, with no connection', async () => {
  await using dns = await startDnsServer();
  await using receiver = await startRawReceiver(() => {});
  await using sender = openSender({ resolver: dns.resolver });
  for (const addresses of [['127.0.0.1', '10.0.0.1'], ['127.0.0.1', 'fd00::1'], ['169.254.169.254']]) {
    dns.records.set('mixed.example.com', addresses);
    const report = await sender.send(request(`http://mixed.example.com:${receiver.port}/`));
    assert.deepEqual(report.outcome, { kind: 'blocked' });
  }
  assert.equal(receiver.connections, 0);
});

test('a name that is bound anew between attempts is blocked, although a connection was kept', async () => {
  await using dns = await startDnsServer();
  await using receiver = await startReceiver();
  const { port } = new URL(receiver.url);
  dns.records.set('rebind.example.com', ['127.0.0.1']);
  await using sender = openSender({ resolver: dns.resolver });
  assert.equal((await sender.send(request(`http://rebind.example.com:${port}/`))).status, 200);
  dns.records.set('rebind.example.com', ['10.0.0.1']);
  assert.deepEqual((await sender.send(request(`http://rebind.example.com:${port}/`))).outcome, { kind: 'blocked' });
  assert.equal(receiver.received.length, 1);
});

test('a name that is bound anew between check and connection changes nothing: it is asked once', async () => {
  await using dns = await startDnsServer();
  await using receiver = await startReceiver();
  const { port } = new URL(receiver.url);
  dns.records.set('once.example.com', ['127.0.0.1']);
  await using sender = openSender({ resolver: dns.resolver });
  assert.equal((await sender.send(request(`http://once.example.com:${port}/`))).remoteAddress, '127.0.0.1');
  assert.equal(dns.questions, 2, 'one question for A, one for AAAA');
});

test('a name that does not exist is unreachable, not blocked', async () => {
  await using dns = await startDnsServer();
  await using sender = openSender({ resolver: dns.resolver });
  const report = await sender.send(request('http://missing.example.com/'));
  assert.deepEqual(report.outcome, { kind: 'unreachable', reason: 'no such name' });
});

const certificates = mkdtempSync(join(tmpdir(), 'trivet-tls-'));
after(() => rmSync(certificates, { recursive: true, force: true }));

interface Pair {
  readonly key: string;
  readonly cert: string;
}

function makeCertificate(name: string, days = 30): Pair {
  const [key, signing, cert] = ['key', 'csr', 'pem'].map((ending) => join(certificates, `${name}.${ending}`)) as [
    string,
    string,
    string,
  ];
  const openssl = (...words: string[]) => execFileSync('openssl', words, { stdio: 'pipe' });
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`];
  openssl('req', '-new', ...curve, '-keyout', key, '-out', signing, ...subject);
  const lifetime = ['-days', String(days), '-copy_extensions', 'copy'];
  openssl('x509', '-req', '-in', signing, '-signkey', key, ...lifetime, '-out', cert);
  return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
}

async function sendOverTls(served: Pair, ca: string | undefined, times = 1): Promise<SendReport> {
  await using dns = await startDnsServer();
  dns.records.set('tls.example.com', ['127.0.0.1']);
  const server = createTlsServer(served, (incoming, response) => {
    incoming.resume();
    response.end('ok');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await using sender = openSender({ resolver: dns.resolver, ...(ca !== undefined && { ca }) });
  let report: SendReport | undefined;
  for (let count = 0; count < times; count += 1)
    report = await sender.send(request(`https://tls.example.com:${port}/hook`));
  assert.ok(sender.connections <= 1);
  server.closeAllConnections();
  server.close();
  return report!;
}

test('TLS goes to the vetted address and checks the name', async () => {
  const pair = makeCertificate('tls.example.com');
  const report = await sendOverTls(pair, pair.cert);
  assert.equal(report.status, 200);
  assert.notEqual(report.timingsMs.tls, null);
});

test('a self-signed, an expired and another name’s certificate are refused', async () => {
  const selfSigned = makeCertificate('tls.example.com');
  assert.match((await sendOverTls(selfSigned, undefined)).reason ?? '', /certificate or TLS error/);
  const other = makeCertificate('other.example.com');
  assert.match((await sendOverTls(other, other.cert)).reason ?? '', /certificate or TLS error/);
  const expired = makeCertificate('tls.example.com', -1);
  assert.match((await sendOverTls(expired, expired.cert)).reason ?? '', /certificate or TLS error/);
});

test('refused certificates leave nothing behind', async () => {
  const selfSigned = makeCertificate('tls.example.com');
  assert.match((await sendOverTls(selfSigned, undefined, 200)).reason ?? '', /certificate or TLS error/);
});
