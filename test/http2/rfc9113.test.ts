/** Every rule of HTTP/2 that a client can break, and those that it may use, on real sockets with and without TLS. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { createCertificate } from '../support/basics/certificate.ts';
import { echoMethods, startGrpcServer } from '../support/grpc/grpc-server.ts';
import { BEGINNING, frame, SETTINGS, talkOver } from '../support/grpc/http2-frames.ts';
import { connectionCases } from './cases/connection-cases.ts';
import { frameCases } from './cases/frame-cases.ts';
import { hpackCases } from './cases/hpack-cases.ts';
import { requestCases } from './cases/request-cases.ts';
import { streamCases } from './cases/stream-cases.ts';
import { hex } from './http2-case.ts';

const plain = await startGrpcServer(echoMethods);
const tls = await startGrpcServer(echoMethods, { tls: createCertificate() });
after(() => Promise.all([plain[Symbol.asyncDispose](), tls[Symbol.asyncDispose]()]));

async function openPlain(): Promise<Socket> {
  const socket = connect(plain.server.port, '127.0.0.1');
  await once(socket, 'connect');
  return socket;
}

async function openTls(): Promise<Socket> {
  const at = { port: tls.server.port, host: '127.0.0.1' };
  const socket = connectTls({ ...at, rejectUnauthorized: false, ALPNProtocols: ['h2'] });
  await once(socket, 'secureConnect');
  return socket;
}

const transports = [
  ['plaintext', openPlain],
  ['TLS', openTls],
] as const;
const cases = [...connectionCases, ...streamCases, ...frameCases, ...requestCases, ...hpackCases];

for (const [transport, open] of transports) {
  for (const { section, title, frames, reaction, isRaw } of cases) {
    const place = section.startsWith('RFC') ? section : `RFC 9113 §${section}`;
    test(`${place}, ${transport}: ${title}: ${reaction.text}`, async () => {
      const beginning = isRaw ? [] : BEGINNING;
      reaction.check(await talkOver(await open(), ...beginning, ...frames));
    });
  }

  test(`RFC 9113 §6.5.3, ${transport}: each SETTINGS is acknowledged once, an acknowledgement never`, async () => {
    const settings = ['', '0004 0000ffff', '0001 00000000'].map((text) => frame(SETTINGS, 0, 0, hex(text)));
    const received = await talkOver(await open(), ...BEGINNING, ...settings, frame(SETTINGS, 1, 0));
    const answers = received.filter(({ type, flags }) => type === SETTINGS && flags === 1);
    assert.equal(answers.length, 4);
    assert.ok(answers.every(({ payload }) => payload.length === 0));
  });
}

test('no two cases have one name', () => {
  const names = cases.map(({ section, title }) => `${section} ${title}`);
  assert.deepEqual(
    names.filter((name, index) => names.indexOf(name) !== index),
    [],
  );
});
