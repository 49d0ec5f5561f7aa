import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readHidden } from '../../../test/support/network/form-client.ts';
import { readCsrf, startConsoleService } from '../../../test/support/pages/console-service.ts';
import {
  createHook,
  FORM,
  pressButton,
  REPOSITORY,
  startHookPages,
  textOf,
  waitForText,
} from '../../../test/support/pages/hook-pages.ts';
import { enqueueTestDelivery } from '../../../test/support/webhooks/deliveries-store.ts';

test('a webhook is made, tested, changed, given another key and none, switched off and on, and deleted', async (t) => {
  const { service, client, receiver } = await startHookPages(t);
  const path = await createHook(client, receiver.url, { note_events: '1' });
  assert.match(textOf(await client.get(`${path}?done=created`)), /nothing sent yet.*The webhook is created/);

  assert.doesNotMatch((await client.get(path)).body, /admin\/activity/, 'the audit log is for administrators');
  await service.addUser('root', true);
  const changes = (await (await service.openAs('root')).get(path)).body;
  assert.match(changes, /href="\/admin\/activity\?repository=ada%2Fdoors&amp;hook=1">Changes of this webhook/);

  assert.match(
    (await client.get(path)).body,
    /<option value="push">push<\/option><option value="note">comment<\/option>/,
  );
  const ofComment = await pressButton(client, path, 'test', { event: 'note' });
  assert.match(textOf(await client.get(ofComment.location ?? '')), /The receiver accepted the test/);
  assert.equal(receiver.received.at(-1)?.headers['x-gitcode-event'], 'Note Hook');
  const tested = await pressButton(client, path, 'test');
  assert.match(tested.location ?? '', /\/deliveries\/\d+\?done=tested$/);
  assert.equal(receiver.received.length, 2);
  assert.match(String(receiver.received.at(-1)?.headers['x-gitcode-signature-256']), /^sha256=/);
  const delivery = textOf(await client.get(tested.location ?? ''));
  assert.match(
    delivery,
    /The receiver accepted the test.*Attempt 1 accepted 200.*Where the time went.*Answer ok.*\[redacted\]/,
  );
  assert.match(textOf(await client.get(path)), /working.*2 deliveries succeeded, 0 failed/);

  const changed = await client.submit(`${path}/change`, `${path}/change`, {
    url: `${receiver.url}2`,
    encryption_type: '0',
    profile: 'github',
    issues_events: '1',
  });
  assert.equal(changed.location, `${path}?done=saved`);
  const shown = textOf(await client.get(`${path}?done=saved`));
  assert.match(shown, /hook2.*The webhook is saved.*Send a request for issue.*By the password.*GitHub/);
  assert.match(shown, /k3y/, 'a change that does not name the key leaves it');
  assert.doesNotMatch((await client.get(path)).body, /<option/, 'there is one event, and no choice');

  assert.equal((await pressButton(client, path, 'key', { password: 'another' })).location, `${path}?done=key`);
  const withKey = await client.get(path);
  assert.match(textOf(withKey), /another.*The former key signs too until/);
  assert.match(withKey.body, /<code class="secret" data-copy>another</, 'the key can be copied');
  for (const [action, question] of [
    ['disable', 'Nothing is sent until it is enabled again'],
    ['remove-key', 'The key cannot be restored'],
  ] as const) {
    const asked = new RegExp(`<details class="ask">(?:(?!</details>).)*${question}(?:(?!</details>).)*${action}`, 's');
    assert.match(withKey.body, asked, `${action} asks first`);
  }
  const keyless = await pressButton(client, path, 'remove-key');
  const bare = textOf(await client.get(keyless.location ?? ''));
  assert.match(bare, /The key was removed.*It has no key/);
  assert.doesNotMatch(bare, /another|Remove the key/);
  assert.equal((await pressButton(client, path, 'disable')).location, `${path}?done=disabled`);
  assert.match(textOf(await client.get(path)), /switched off.*Disabled since.*Switched off by its owner/);
  assert.equal((await pressButton(client, path, 'enable')).location, `${path}?done=enabled`);
  assert.doesNotMatch(textOf(await client.get(path)), /Disabled since/);

  const unconfirmed = await client.readRefusal(pressButton(client, path, 'delete'));
  assert.deepEqual([unconfirmed.status, /Tick the box/.test(unconfirmed.body)], [422, true]);
  assert.equal((await pressButton(client, path, 'delete', { confirm: 'yes' })).location, `${REPOSITORY}?done=deleted`);
  assert.equal((await client.get(path)).status, 404);
});

test('a form that was opened before a webhook moved and was switched off changes what the person changed alone', async (t) => {
  const { client, receiver } = await startHookPages(t);
  const path = await createHook(client, receiver.url);
  const shown = { url: receiver.url, encryption_type: '1', profile: 'gitcode', push_events: '1' };
  const opened = readHidden((await client.get(`${path}/change`)).body, `${path}/change`);
  const moved = `${receiver.url}2`;
  await client.submit(`${path}/change`, `${path}/change`, { ...shown, url: moved });
  await pressButton(client, path, 'disable');

  const saved = await client.post(`${path}/change`, { ...opened, ...shown, note_events: '1' });
  assert.equal(saved.location, `${path}?done=saved`);
  const page = textOf(await client.get(path));
  assert.match(page, /switched off/);
  assert.match(page, /push, comment/);
  assert.ok(page.includes(moved));

  const refused = await client.readRefusal(
    client.post(`${path}/change`, { ...opened, ...shown, url: `${receiver.url}3`, profile: 'github' }),
  );
  assert.equal(refused.status, 422);
  assert.match(textOf(refused), /What you changed was changed elsewhere meanwhile/);
  assert.ok(refused.body.includes(`value="${moved}"`));
  assert.match(refused.body, /value="github" selected/);
  const blank = await client.readRefusal(client.submit(`${path}/change`, `${path}/change`, { ...shown, url: '' }));
  assert.match(textOf(blank), /“Address” must not be blank/);
});

test('a form is refused with the labels of its fields, and keeps what was typed', async (t) => {
  const { client, receiver } = await startHookPages(t);
  const cases = [
    [{ url: '' }, 'Cannot create the webhook: “Address” must not be blank'],
    [{ url: 'http://10.0.0.1/' }, '“Address” must not be a private or reserved address'],
    [
      { url: 'http://127.0.0.1:9/', profile: 'bitbucket' },
      '“Format of the deliveries” must be one of gitcode, gitee, github, gitlab',
    ],
    [{ url: 'http://127.0.0.1:9/', password: 'x'.repeat(20_000) }, '“Key” must be at most 255 characters'],
    [
      { url: receiver.url, encryption_type: '0', password: ' k3y' },
      '“Key” must not begin or end with a blank: it travels in a header',
    ],
  ] as const;
  for (const [fields, sentence] of cases) {
    const refused = await client.readRefusal(
      client.submit(`${REPOSITORY}/new`, REPOSITORY, { ...FORM, note_events: '1', ...fields }),
    );
    assert.equal(refused.status, 422);
    assert.ok(textOf(refused).includes(sentence), sentence);
    assert.match(refused.body, /name="note_events" value="1" checked/);
    if (fields.url !== '') assert.ok(refused.body.includes(`value="${fields.url}"`));
  }
  const taken = await client.readRefusal(
    client.submit('/webhooks/new', '/webhooks/new', { owner: 'ada', name: 'Doors', description: '' }),
  );
  assert.deepEqual([taken.status, /exists already/.test(taken.body)], [422, true]);
  for (const [language, sentence] of [
    ['en', 'Cannot create the repository: “Name” must not be blank.'],
    ['zh-CN', '“名称”不能为空。'],
  ] as const) {
    client.jar.set('trivet_language', language);
    const sent = client.submit('/webhooks/new', '/webhooks/new', { owner: 'ada', name: '', description: '' });
    assert.equal(
      (await client.readRefusal(sent)).body.split(sentence).length,
      3,
      `${sentence} on top and at the field`,
    );
  }
});

test('a repository whose description is as long as the rules allow, in Chinese, is created', async (t) => {
  const { client } = await startHookPages(t);
  // A browser encodes each of these characters in nine bytes.
  const description = '说'.repeat(2000);
  const sent = await client.submit('/webhooks/new', '/webhooks/new', { owner: 'ada', name: 'other', description });
  assert.equal(sent.location, '/webhooks/ada/other?done=created');
  assert.ok((await client.get(sent.location)).body.includes(description));
});

test('a paused webhook says since when, until when and why, and that a test ends it', async (t) => {
  let status = 429;
  const { client, receiver, service } = await startHookPages(t, (_, response) =>
    response.writeHead(status, { 'retry-after': '3600' }).end(),
  );
  const path = await createHook(client, receiver.url);
  const hookId = Number(path.split('/').at(-1));
  for (let count = 0; count < 8; count += 1) await enqueueTestDelivery(service.store, { hookId, url: receiver.url });
  await waitForText(client, path, /Nothing is sent since/);
  const notice =
    /Nothing is sent since [-\d]+ [:\d]+ UTC : the receiver answered 429 and asked to wait\. The pause ends at [-\d]+ [:\d]+ UTC \. One delivery then tries again.*“Send a test” does not wait: if the receiver accepts it, the pause ends and \d waiting deliveries are sent/;
  assert.match(textOf(await client.get(path)), notice);
  const log = textOf(await client.get(`${path}/deliveries`));
  assert.match(log, notice);
  assert.match(log, /the webhook is paused, next attempt [-\d]+ [:\d]+ UTC/);
  assert.match(textOf(await client.get(REPOSITORY)), /failing paused/);
  status = 200;
  await pressButton(client, path, 'test');
  await waitForText(client, path, /^(?!.*Nothing is sent since)/s);
  await waitForText(client, path, /^(?!.*the webhook is paused)/s);
});

test('what waits behind a pause and for a retry is sent at once when a person asks', async (t) => {
  let status = 429;
  const { service, client, receiver } = await startHookPages(t, (_, response) =>
    response.writeHead(status, { 'retry-after': '3600' }).end(),
  );
  const path = await createHook(client, receiver.url);
  const hookId = Number(path.split('/').at(-1));
  assert.doesNotMatch((await client.get(path)).body, /send-waiting/, 'nothing waits');
  await enqueueTestDelivery(service.store, { hookId, url: receiver.url });
  await waitForText(client, path, /Nothing is sent since/);
  status = 200;
  const sent = await pressButton(client, path, 'send-waiting');
  assert.equal(sent.location, `${path}?done=sent-waiting`);
  assert.match(textOf(await client.get(sent.location ?? '')), /What waited is being sent/);
  await receiver.waitFor(2);
  await waitForText(client, path, /^(?!.*Nothing is sent since)/s);
  await pressButton(client, path, 'disable');
  const held = await client.readRefusal(client.post(`${path}/send-waiting`, await readCsrf(client)));
  assert.deepEqual([held.status, /the webhook is off/.test(held.body)], [422, true]);
});

test('a person cannot see, change or detect the repository of another person', async (t) => {
  const { service, client, receiver } = await startHookPages(t);
  const path = await createHook(client, receiver.url);
  const tested = ((await pressButton(client, path, 'test')).location ?? '').replace('?done=tested', '');
  await service.addUser('eve');
  const eve = await service.openAs('eve');
  const csrf = await readCsrf(eve);
  const missing = textOf(await eve.get('/webhooks/ada/nothing'));
  for (const page of [REPOSITORY, `${REPOSITORY}/new`, path, `${path}/change`, `${path}/deliveries`, tested]) {
    const answer = await eve.get(page);
    assert.deepEqual([answer.status, textOf(answer)], [404, missing], page);
  }
  assert.equal((await eve.get('/webhooks?owner=ada')).status, 404);
  const forms = [
    REPOSITORY,
    `${tested}/again`,
    ...['change', 'test', 'enable', 'disable', 'key', 'send-waiting', 'replay', 'delete'].map(
      (name) => `${path}/${name}`,
    ),
  ];
  const fields = { ...csrf, ...FORM, url: receiver.url, confirm: 'yes', since: '2020-01-01T00:00' };
  for (const form of forms) assert.equal((await eve.readRefusal(eve.post(form, fields))).status, 404, form);
  const claimed = await eve.readRefusal(
    eve.post('/webhooks/new', { ...csrf, owner: 'ada', name: 'mine', description: '' }),
  );
  assert.equal(claimed.status, 404);
  assert.equal(receiver.received.length, 1);
  assert.match(textOf(await client.get(path)), /working/);
  assert.doesNotMatch((await eve.get('/webhooks')).body, /doors/);
});

test('every form requires the token of this session, and every page a signed-in person', async (t) => {
  const { service, client, receiver } = await startHookPages(t);
  const path = await createHook(client, receiver.url);
  const forms = [
    '/webhooks/new',
    REPOSITORY,
    ...['change', 'test', 'enable', 'disable', 'key', 'send-waiting', 'replay', 'delete'].map(
      (name) => `${path}/${name}`,
    ),
  ];
  for (const form of forms) {
    assert.equal(
      (await client.readRefusal(client.post(form, { url: receiver.url, confirm: 'yes' }))).status,
      403,
      form,
    );
    const posted = client.post(form, await readCsrf(client), { origin: 'https://evil.example' });
    const foreign = await client.readRefusal(posted);
    assert.equal(foreign.status, 403, form);
  }
  const stranger = await fetch(service.url + path, { redirect: 'manual' });
  assert.match(stranger.headers.get('location') ?? '', /^\/sign-in\?return_to=/);
  assert.equal((await client.get(path)).status, 200);
});

test('hostile names, addresses, answers and headers are shown as text', async (t) => {
  const attack = '"><script>alert(1)</script>';
  const { client, receiver } = await startHookPages(t, (_, response) => {
    response.setHeader('x-attack', attack);
    response.statusCode = 500;
    response.end(attack);
  });
  const path = await createHook(client, `${receiver.url}?q='&x=(1)`, { password: attack });
  const tested = (await pressButton(client, path, 'test')).location ?? '';
  const described = await client.submit('/webhooks/new', '/webhooks/new', {
    owner: 'ada',
    name: 'other',
    description: attack,
  });
  assert.equal(described.status, 303);
  const pages = ['/webhooks', REPOSITORY, '/webhooks/ada/other', path, `${path}/change`, `${path}/deliveries`, tested];
  const hostile = `?state=${encodeURIComponent(attack)}&since=${encodeURIComponent(attack)}&event=${encodeURIComponent(attack)}`;
  for (const page of [...pages, `${path}/deliveries${hostile}`]) {
    const answer = await client.get(page);
    assert.doesNotMatch(answer.body, /<script(?! type="module" src="\/assets\/)|<img|style="/, page);
    assert.match(answer.headers.get('content-security-policy') ?? '', /^default-src 'none'; style-src 'self'/);
  }
  assert.match((await client.get(tested)).body, /x-attack<\/code><\/dt><dd><code>&quot;&gt;&lt;script&gt;alert\(1\)/);
});

test('pages are there for the parts that the process serves', async (t) => {
  const service = await startConsoleService({ PARTS: 'authorization' });
  t.after(() => service[Symbol.asyncDispose]());
  await service.addUser('ada');
  const client = await service.openAs('ada');
  assert.equal((await client.get('/webhooks')).status, 404);
  assert.doesNotMatch((await client.get('/')).body, /href="\/webhooks"/);
});
