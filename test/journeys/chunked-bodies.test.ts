/** Chunked bodies, whose length is unknown before their end: unauthenticated clients get less memory than callers with a token. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { createSampleEvent } from '../../src/webhooks/events/sample-event.ts';
import { PATIENTLY, useWebhookJourney } from '../support/webhooks/webhook-journey.ts';

const journey = useWebhookJourney();
const EVENTS = '/api/v5/repos/grace/doors/events';
const TOO_LONG = 'x'.repeat(100_000);

/** Sends the start of a body but never its end. Returns the answer. */
async function sendBeginning(path: string, type: string): Promise<string> {
  const { hostname, port } = new URL(journey.httpUrl);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  await once(socket, 'connect');
  const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\nConnection: close\r\n`;
  socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n${TOO_LONG.length.toString(16)}\r\n${TOO_LONG}\r\n`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return String(answer);
}

test('a body in chunks is refused before its end when its sender has no token', PATIENTLY, async () => {
  for (const type of ['application/json', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])
    for (const path of [EVENTS, '/api/v5/user/repos', '/api/admin/v1/hooks'])
      assert.match(await sendBeginning(path, type), /^HTTP\/1\.1 401 /);
  assert.match(await sendBeginning('/oauth/token', 'application/x-www-form-urlencoded'), /^HTTP\/1\.1 413 /);
});

test('a body in chunks that is longer than a form may be arrives with a token', PATIENTLY, async () => {
  const event = createSampleEvent('push', { username: 'grace', name: 'Grace' }, 'main', Date.UTC(2026, 0, 1));
  const body = new Blob([JSON.stringify({ ...event, more: TOO_LONG })]).stream();
  const headers = { authorization: `Bearer ${journey.token}`, 'content-type': 'application/json' };
  const answer = await fetch(journey.httpUrl + EVENTS, {
    method: 'POST',
    headers,
    body,
    duplex: 'half',
  } as RequestInit);
  assert.equal(answer.status, 202, await text(answer.body!));
});
