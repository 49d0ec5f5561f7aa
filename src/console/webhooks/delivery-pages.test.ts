/** The log of a webhook on its pages: found, filtered, and sent again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Answer } from '../../../test/support/network/form-client.ts';
import {
  createHook,
  pressButton,
  REPOSITORY,
  startHookPages,
  textOf,
  waitForText,
} from '../../../test/support/pages/hook-pages.ts';

test('what failed is seen with its reason, found by filters, and sent again', async (t) => {
  let status = 410;
  const { client, receiver } = await startHookPages(t, (_, response) => {
    response.statusCode = status;
    response.end('{"error":"we are <closed>"}');
  });
  const path = await createHook(client, receiver.url);
  const first = (await pressButton(client, path, 'test')).location ?? '';
  const deliveryPath = first.replace('?done=tested', '');
  await waitForText(client, path, /Disabled since/);
  assert.match(textOf(await client.get(path)), /disabled.*The receiver answered 410 Gone.*we are &lt;closed&gt;/);
  assert.match(textOf(await client.get('/webhooks')), /1 webhook 1 disabled/);
  assert.match(textOf(await client.get(REPOSITORY)), /disabled.*The receiver answered 410 Gone/);

  status = 200;
  assert.equal((await pressButton(client, path, 'enable')).status, 303);
  const log = `${path}/deliveries`;
  const count = async (query: string) => (await client.get(log + query)).body.split('<li class="item">').length - 1;
  assert.deepEqual(
    [
      await count('?state=dead'),
      await count('?state=succeeded'),
      await count('?event=note'),
      await count('?since=2020-01-01T00:00'),
    ],
    [1, 0, 0, 1],
  );
  const wrong = await client.get(`${log}?state=lost&since=yesterday`);
  assert.deepEqual([wrong.status, textOf(wrong).includes('“State” must be one of pending')], [422, true]);

  assert.equal((await pressButton(client, deliveryPath, 'again')).location, `${deliveryPath}?done=again`);
  await receiver.waitFor(2);
  assert.deepEqual(receiver.received[1]?.body, receiver.received[0]?.body);
  assert.equal(
    (await pressButton(client, path, 'replay', { since: '2020-01-01T00:00' })).location,
    `${path}?replayed=0`,
  );
  assert.match(textOf(await client.get(`${path}?replayed=0`)), /No delivery has failed permanently/);
  const unreadable = await client.readRefusal(pressButton(client, path, 'replay', { since: 'soon' }));
  assert.deepEqual([unreadable.status, /“Since \(UTC\)” must be an ISO 8601 time/.test(unreadable.body)], [422, true]);
});

test('the log goes on page by page under the same filter', async (t) => {
  const { client, receiver } = await startHookPages(t);
  const path = await createHook(client, receiver.url);
  for (let count = 0; count < 27; count += 1) await pressButton(client, path, 'test');
  const first = await client.get(`${path}/deliveries?state=succeeded`);
  const older = /href="([^"]+before=\d+)"/.exec(first.body)?.[1]?.replaceAll('&amp;', '&') ?? '';
  assert.match(older, /state=succeeded/);
  const second = await client.get(older);
  const countOf = (answer: Answer) => answer.body.split('<li class="item">').length - 1;
  assert.deepEqual([countOf(first), countOf(second)], [25, 2]);
});

test('a delivery is found by its id, its number, what it is about, and its status', async (t) => {
  const { client, receiver } = await startHookPages(t, (_, response) => {
    response.statusCode = 503;
    response.end();
  });
  const path = await createHook(client, receiver.url);
  const tested = ((await pressButton(client, path, 'test')).location ?? '').replace('?done=tested', '');
  const number = tested.split('/').at(-1) ?? '';
  const uuid = /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(textOf(await client.get(tested)))?.[0] ?? '';
  const find = async (query: string) => textOf(await client.get(`${path}/deliveries?${query}`));
  for (const query of [`q=${uuid}`, `q=${number}`, 'q=main', 'q=refs/heads/main', 'status=503', 'status=5xx&q=main'])
    assert.match(
      await find(query),
      new RegExp(`push main Delivery ${number} failed permanently 503 1 attempt · [\\d.]+ ms.*${uuid}`),
    );
  for (const query of ['q=develop', 'q=12', 'q=1234567890123', 'status=200', 'status=0'])
    assert.match(await find(query), /No delivery matches/, query);
  const wrong = (await client.get(`${path}/deliveries?status=many`)).body;
  assert.match(wrong, /<input id="field-status"[^>]* aria-invalid="true"[^>]* autofocus/);
  assert.equal(wrong.split('“Status” must be a status as 500').length, 3, 'on top and at the field');
  const [, link = ''] = /href="([^"]*\/deliveries\/\d+[^"]*)"/.exec(
    (await client.get(`${path}/deliveries?q=main&status=503`)).body,
  ) ?? [''];
  const detail = await client.get(link.replaceAll('&amp;', '&'));
  assert.ok(detail.body.includes(`href="${path}/deliveries?q=main&amp;status=503"`), 'the way back keeps the filter');
  assert.match(detail.body, /curl -X POST &#39;http/);
  assert.match(detail.body, /For a receiver that checks them, use “Send again”/);
});

test('a test that was refused is not green', async (t) => {
  const { client, receiver } = await startHookPages(t, (_, response) => {
    response.statusCode = 429;
    response.setHeader('Retry-After', '600');
    response.end();
  });
  const path = await createHook(client, receiver.url);
  const tested = await client.get((await pressButton(client, path, 'test')).location ?? '');
  assert.match(tested.body, /class="notice bad" role="status"><strong>The receiver did not accept the test/);
  assert.match(textOf(tested), /A test is sent once and not tried again/);
  const [heights] = /class="heights.*?<\/div>/.exec((await client.get(path)).body) ?? [];
  assert.match(heights ?? '', />2<.*>1<.*>0</, 'the axis of a count has whole numbers');
});
