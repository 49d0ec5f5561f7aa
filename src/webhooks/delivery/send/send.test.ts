import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { findFreePort } from '../../../../test/support/basics/free-port.ts';
import { onRequest } from '../../../../test/support/network/raw-receiver.ts';
import { startReceiver } from '../../../../test/support/network/receiver.ts';
import { answerWith, deliveryTo, openSender, sendTo } from '../../../../test/support/webhooks/test-sender.ts';
import type { SendReport } from './send-report.ts';

test('an accepted delivery reports status, headers, body, address and times', async () => {
  await using receiver = await startReceiver((_, response) => {
    response.setHeader('X-Answer', 'a');
    response.end('thanks');
  });
  await using sender = openSender();
  const report = await sender.send(deliveryTo(`${receiver.url}?token=a%20b`));
  assert.deepEqual(report.outcome, { kind: 'accepted', status: 200 });
  assert.equal(Buffer.from(report.responseBody).toString(), 'thanks');
  assert.equal(report.responseHeaders['x-answer'], 'a');
  assert.equal(report.remoteAddress, '127.0.0.1');
  assert.notEqual(report.timingsMs.connect, null);
  assert.equal(receiver.received[0]?.path, '/hook?token=a%20b');
  sender.letRest();
  const again = await sender.send(deliveryTo(receiver.url));
  assert.equal(again.timingsMs.connect, null, 'the connection was kept');
  assert.equal(receiver.received[0]?.remotePort, receiver.received[1]?.remotePort);
});

test('headers that belong to the connection cannot be set', async () => {
  await using receiver = await startReceiver();
  await using sender = openSender();
  const harmful = { Host: 'internal', Connection: 'upgrade', Upgrade: 'websocket', 'Transfer-Encoding': 'chunked' };
  const { headers } = deliveryTo(receiver.url);
  await sender.send({ ...deliveryTo(receiver.url), headers: { ...headers, ...harmful } });
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

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
const interim: [title: string, before: string][] = [
  ['100', CONTINUE],
  ['100 with headers', 'HTTP/1.1 100 \r\nX-Note: HTTP/1.1 100\r\nA: b\r\n\r\n'],
  [
    '102, 100, 103 and 100',
    `HTTP/1.1 102 Processing\r\n\r\n${CONTINUE}HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${CONTINUE}`,
  ],
  ['199 and 100', `HTTP/1.1 199 Unknown\r\n\r\n${CONTINUE}`],
  ['sixteen of 100', CONTINUE.repeat(16)],
];
for (const [title, before] of interim) {
  const answer = `${before}HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nHTTP/1.1 `;
  test(`interim responses that were not asked for come before the answer: ${title}`, async () => {
    const report = await sendTo(answerWith(answer));
    assert.deepEqual(report.outcome, { kind: 'accepted', status: 200 });
    assert.equal(Buffer.from(report.responseBody).toString(), 'HTTP/1.1 ');
  });
  test(`interim responses may come byte by byte: ${title}`, async () => {
    const report = await sendTo((socket) => void socket.once('data', () => void writeBytes(socket, answer)));
    assert.deepEqual(report.outcome, { kind: 'accepted', status: 200 });
  });
}

async function writeBytes(socket: Socket, text: string): Promise<void> {
  socket.setNoDelay(true);
  for (const byte of text) {
    await new Promise((resolve) => socket.write(byte, resolve));
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test('a refusal after a 100 is a refusal', async () => {
  const report = await sendTo(answerWith(`${CONTINUE}HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n`));
  assert.equal(report.status, 500);
});

type Hostile = [title: string, onConnection: (socket: Socket) => void, reason: RegExp];

const endless: Hostile[] = [
  ['accepts and stays silent', () => {}, /response timeout/],
  ['never reads', (socket) => socket.pause(), /response timeout/],
  ['sends its head slowly', (socket) => drip(socket, 'HTTP/1.1 200 OK\r\nX-Slow: '), /response timeout/],
  ['sends one byte at a time', (socket) => drip(socket, 'HTTP'), /response timeout|malformed/],
];
for (const [title, onConnection, reason] of endless)
  test(`a receiver that ${title} is unreachable, and costs no more than the deadline`, async () => {
    checkUnreachable(await sendTo(onConnection, 700), reason);
  });

const refusedAtOnce: Hostile[] = [
  [
    'floods with 103 answers',
    answerWith('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(10_000)),
    /too many interim/,
  ],
  ['floods with 100 answers', answerWith(CONTINUE.repeat(10_000)), /too many interim/],
  ['changes the protocol', answerWith('HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n'), /closed before/],
  ['sends a head of a megabyte', answerWith(`HTTP/1.1 200 OK\r\nX-Big: ${'a'.repeat(1_000_000)}\r\n\r\n`), /too large/],
  ['sends garbage', answerWith('\u0000\u0001 this is not HTTP \r\n\r\n'), /malformed/],
  ['sends two lengths', answerWith('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok'), /malformed/],
  [
    'sends a length and chunks',
    answerWith('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n'),
    /malformed/,
  ],
  ['resets the connection', (socket) => void socket.once('data', () => socket.resetAndDestroy()), /closed before/],
  ['closes without an answer', (socket) => void socket.once('data', () => socket.end()), /closed before/],
];
for (const [title, onConnection, reason] of refusedAtOnce)
  test(`a receiver that ${title} is unreachable long before the deadline`, async () => {
    checkUnreachable(await sendTo(onConnection), reason);
  });

function checkUnreachable({ outcome, status, reason }: SendReport, expected: RegExp): void {
  assert.equal(outcome.kind, 'unreachable');
  assert.equal(status, 0);
  assert.match(reason ?? '', expected);
}

function drip(socket: Socket, start: string): void {
  socket.write(start);
  const timer = setInterval(() => socket.write('a'), 50);
  socket.on('close', () => clearInterval(timer));
}

test('an address without a listener is unreachable at once', async () => {
  await using sender = openSender();
  const url = `http://127.0.0.1:${await findFreePort()}/`;
  assert.equal((await sender.send(deliveryTo(url))).reason, 'connection refused');
});

test('a receiver that never accepts is given up at the deadline', async () => {
  await using sender = openSender({ allowCidrs: ['192.0.2.0/24'] });
  const report = await sender.send(deliveryTo('http://192.0.2.1:8080/', 500));
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

test('a gzip bomb is not decompressed', async () => {
  const bomb = gzipSync(Buffer.alloc(50_000_000));
  const head = `HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${bomb.length}\r\n\r\n`;
  const report = await sendTo(answerWith(Buffer.concat([Buffer.from(head), bomb])));
  assert.equal(report.outcome.kind, 'accepted');
  assert.deepEqual(Buffer.from(report.responseBody), bomb.subarray(0, 8192));
});
