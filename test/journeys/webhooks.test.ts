/** Hooks, events and deliveries of the real program, from the outside. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { createSampleEvent } from '../../src/webhooks/events/sample-event.ts';
import { signBody } from '../../src/webhooks/profiles/signature.ts';
import { findFreePort } from '../support/basics/free-port.ts';
import { type Receiver, startReceiver } from '../support/network/receiver.ts';
import { HOOKS, PATIENTLY, useWebhookJourney } from '../support/webhooks/webhook-journey.ts';

const journey = useWebhookJourney();
const push = createSampleEvent('push', { username: 'grace', name: 'Grace' }, 'main', Date.UTC(2026, 0, 1));

const CARRIERS: [title: string, send: (url: string, token: string) => Promise<Response>][] = [
  ['Authorization: Bearer', (url, secret) => fetch(url, { headers: { authorization: `Bearer ${secret}` } })],
  ['Authorization: token', (url, secret) => fetch(url, { headers: { authorization: `token ${secret}` } })],
  ['PRIVATE-TOKEN', (url, secret) => fetch(url, { headers: { 'private-token': secret } })],
  [
    'Authorization and PRIVATE-TOKEN at once',
    (url, secret) => fetch(url, { headers: { authorization: `Bearer ${secret}`, 'private-token': secret } }),
  ],
  ['access_token in the query', (url, secret) => fetch(`${url}?access_token=${secret}`)],
];

for (const [title, send] of CARRIERS)
  test(`the hooks are listed with the token as ${title}`, async () => {
    const response = await send(`${journey.httpUrl}/api/v5${HOOKS}`, journey.token);
    assert.equal(response.status, 200);
    assert.ok(Array.isArray(await response.json()));
  });

test('a hook is made with the token in the form, as GitCode documents it', async () => {
  const form = { access_token: journey.token, url: 'http://127.0.0.1:9109/', password: 'p', tag_push_events: 'true' };
  const response = await fetch(`${journey.httpUrl}/api/v5${HOOKS}`, {
    method: 'POST',
    body: new URLSearchParams(form),
  });
  assert.equal(response.status, 201);
  const hook = (await response.json()) as { id: number; password: string; tag_push_events: boolean };
  assert.deepEqual([hook.password, hook.tag_push_events], ['p', true]);
  const multipart = new FormData();
  for (const [name, value] of Object.entries({ ...form, url: 'http://127.0.0.1:9110/' })) multipart.set(name, value);
  const changed = await fetch(`${journey.httpUrl}/api/v5${HOOKS}/${hook.id}`, { method: 'PATCH', body: multipart });
  assert.equal(changed.status, 200);
  assert.equal(((await changed.json()) as { url: string }).url, 'http://127.0.0.1:9110/');
  assert.equal((await journey.call('DELETE', `${HOOKS}/${hook.id}`))[0], 204);
});

test('a published push arrives signed, in every way the profile promises', async () => {
  await using receiver: Receiver = await startReceiver();
  await journey.withHook({ url: receiver.url, encryption_type: 1, password: 'key' }, async () => {
    const [status, answer] = await journey.call('POST', '/repos/grace/doors/events', push);
    assert.equal(status, 202);
    await receiver.waitFor(1);
    const { headers, body } = receiver.received[0]!;
    assert.equal(headers['user-agent'], 'git-gitcode-hook');
    assert.equal(headers['x-gitcode-event'], 'Push Hook');
    assert.equal(headers['x-gitcode-delivery'], answer.deliveries[0].uuid);
    assert.equal(headers['x-gitcode-signature-256'], signBody(Buffer.from('key'), body));
    assert.equal(headers['x-gitcode-token'], undefined);
    const verified = new Webhook('key', { format: 'raw' }).verify(body, headers as Record<string, string>);
    assert.equal((verified as { uuid: string }).uuid, answer.deliveries[0].uuid);
    assert.equal(JSON.parse(body.toString()).project.path_with_namespace, 'grace/doors');
  });
});

test('after a change of the key deliveries carry the signature of the former one too', async () => {
  await using receiver: Receiver = await startReceiver();
  await journey.withHook({ url: receiver.url, encryption_type: 1, password: 'former' }, async ({ id }) => {
    await journey.call('PATCH', `${HOOKS}/${id}`, { url: receiver.url, password: 'current' });
    await journey.call('POST', '/repos/grace/doors/events', push);
    await receiver.waitFor(1);
    const { headers, body } = receiver.received[0]!;
    for (const key of ['former', 'current'])
      assert.ok(new Webhook(key, { format: 'raw' }).verify(body, headers as Record<string, string>));
    assert.equal(headers['x-gitcode-signature-256'], signBody(Buffer.from('current'), body));
  });
});

test('a password outside of ASCII arrives as its UTF-8 bytes', async () => {
  await using receiver: Receiver = await startReceiver();
  await journey.withHook({ url: receiver.url, password: 'пароль-密码' }, async ({ id }) => {
    await journey.call('POST', `${HOOKS}/${id}/tests`);
    const token = String(receiver.received[0]?.headers['x-gitcode-token']);
    assert.equal(Buffer.from(token, 'latin1').toString('utf8'), 'пароль-密码');
  });
});

test('a test delivery answers 204 whatever the receiver answers, and the hook shows the answer', async () => {
  await using receiver: Receiver = await startReceiver((_, response) => response.writeHead(503).end('not now'));
  await journey.withHook({ url: receiver.url, push_events: false, note_events: true }, async ({ id }) => {
    assert.deepEqual(await journey.call('POST', `${HOOKS}/${id}/tests`), [204, undefined]);
    assert.equal(receiver.received.length, 1);
    const [, hook] = await journey.call('GET', `${HOOKS}/${id}`);
    assert.deepEqual([hook.result, hook.result_code], ['not now', 503]);
    const [, log] = await journey.call('GET', `${HOOKS}/${id}/deliveries`);
    assert.equal(log[0].attempts, 1);
  });
  const unreachable = await journey.createHook({ url: `http://127.0.0.1:${await findFreePort()}/` });
  assert.deepEqual(await journey.call('POST', `${HOOKS}/${unreachable.id}/tests`), [204, undefined]);
  const [, hook] = await journey.call('GET', `${HOOKS}/${unreachable.id}`);
  assert.equal(hook.result_code, 0);
  assert.match(hook.result, /\w+/);
  await journey.call('DELETE', `${HOOKS}/${unreachable.id}`);
});

test('the command line makes hooks, publishes, tests and shows deliveries beside the service', PATIENTLY, async () => {
  await using receiver: Receiver = await startReceiver();
  const created = await journey.trivet(
    'hook',
    'create',
    'grace/doors',
    '--url',
    receiver.url,
    '--events',
    'issue,note',
    '--password',
    'pw',
    '--json',
  );
  const { id } = JSON.parse(created);
  const sent = await journey.trivet('event', 'send', 'grace/doors', '--kind', 'issue', '--sample', '--count', '3');
  assert.equal(sent, '3 published, 3 deliveries made');
  await receiver.waitFor(3);
  assert.deepEqual(new Set(receiver.received.map(({ headers }) => headers['x-gitcode-token'])), new Set(['pw']));
  assert.match(await journey.trivet('hook', 'test', 'grace/doors', String(id)), /^200 in \d+ ms \(delivery \d+\)$/);
  assert.equal(receiver.received.length, 4);
  const lines = (await journey.trivet('hook', 'deliveries', 'grace/doors', String(id), '--json')).split('\n');
  assert.equal(lines.length, 4);
  const { id: deliveryId, uuid } = JSON.parse(lines[3] ?? '{}');
  await journey.trivet('hook', 'redeliver', 'grace/doors', String(id), String(deliveryId));
  await receiver.waitFor(5);
  assert.equal(receiver.received[4]?.headers['x-gitcode-delivery'], uuid);
  assert.match(await journey.trivet('hook', 'list', 'grace/doors'), /issue,note/);
  await journey.trivet('hook', 'delete', 'grace/doors', String(id));
  assert.match(await journey.trivet('repo', 'list', 'grace'), /grace\/doors/);
});
