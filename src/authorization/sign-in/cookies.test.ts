/** Cookies and form tokens keep other sites from acting for a browser (CSRF). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFormClient, readHidden } from '../../../test/support/network/form-client.ts';
import { addUser, openAs, PASSWORD, servePages } from '../../../test/support/pages/page-service.ts';
import { allMessages } from '../messages/all-messages.ts';

test('S05 over https every cookie is __Host-, Secure, HttpOnly and Lax', async (t) => {
  const service = await servePages(t, { baseUrl: 'https://id.example.org' });
  await addUser(service, 'ada');
  const client = createFormClient(service.url);
  const opened = await client.get('/sign-in');
  const fields = { ...readHidden(opened.body, '/sign-in'), login: 'ada', password: PASSWORD };
  const answer = await client.post('/sign-in', fields, { origin: 'https://id.example.org' });
  assert.equal(answer.status, 303);
  const cookies = [...opened.cookies, ...answer.cookies];
  assert.ok(cookies.some((line) => line.startsWith('__Host-trivet_session=')));
  for (const line of cookies) {
    assert.match(line, /^__Host-/);
    for (const part of ['Path=/', 'Secure', 'HttpOnly', 'SameSite=Lax']) assert.ok(line.includes(part), line);
    assert.doesNotMatch(line, /Domain/i);
  }
});

test('S05 on plain http the cookies have bare names, since the prefix demands Secure', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  const client = await openAs(service, 'ada');
  assert.deepEqual([...client.jar.keys()], ['trivet_session', 'trivet_device']);
});

test('S06 a form without its token, with the token of another, or from another site is refused', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  await addUser(service, 'eve');
  const ada = await openAs(service, 'ada');
  const eve = await openAs(service, 'eve');
  const own = readHidden((await ada.get('/account')).body, '/account');
  const foreign = readHidden((await eve.get('/account')).body, '/account');
  const targets = [
    '/account',
    '/account/tokens',
    '/account/tokens/delete',
    '/account/applications',
    '/account/sessions/end',
    '/account/sessions/end-others',
    '/account/authorizations/revoke',
    '/account/security/password',
    '/account/security/totp',
    '/account/security/totp/stop',
    '/account/security/passkeys',
    '/sign-out',
  ];
  for (const path of targets) {
    assert.equal((await ada.readRefusal(ada.post(path, {}))).status, 403, `${path} without a token`);
    assert.equal((await ada.readRefusal(ada.post(path, foreign))).status, 403, `${path} with the token of another`);
    for (const origin of ['https://evil.example', 'null', 'http://127.0.0.1:1'])
      assert.equal((await ada.readRefusal(ada.post(path, own, { origin }))).status, 403, `${path} from ${origin}`);
  }
  assert.equal((await ada.get('/account')).status, 200);
});

test('S06 the sign-in form itself cannot be forged', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'eve');
  const victim = createFormClient(service.url);
  await victim.get('/sign-in');
  const eve = createFormClient(service.url);
  const hidden = readHidden((await eve.get('/sign-in')).body, '/sign-in');
  const fields = { login: 'eve', password: PASSWORD };
  assert.equal((await victim.readRefusal(victim.post('/sign-in', { ...hidden, ...fields }))).status, 403);
  assert.equal((await victim.readRefusal(victim.post('/sign-in', fields))).status, 403);
  assert.equal(
    (await victim.readRefusal(victim.post('/sign-in', fields, { 'sec-fetch-site': 'cross-site', origin: '' }))).status,
    403,
  );
});

test('a form from another site sets no cookie, so that the forms that are open still work', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  const client = createFormClient(service.url);
  const hidden = readHidden((await client.get('/sign-in')).body, '/sign-in');
  // As a browser sends a cross-site form: without the cookies, which are SameSite=Lax.
  const foreign = createFormClient(service.url);
  for (const path of ['/sign-in', '/language', '/setup']) {
    const answer = await foreign.post(path, { language: 'zh-CN' }, { origin: 'https://evil.example' });
    assert.deepEqual(
      [answer.status, answer.location, answer.cookies],
      [303, '/refused?refused=another-site', []],
      path,
    );
  }
  const shown = await client.get('/refused?refused=another-site');
  assert.equal(shown.status, 403);
  assert.match(shown.body, /This form was sent from another site/);
  assert.equal((await client.post('/sign-in', { ...hidden, login: 'ada', password: PASSWORD })).location, '/');
});

test('a form from another site that is refused for another reason shows a reason of its own, and nothing that was sent', async (t) => {
  const service = await servePages(t);
  const foreign = createFormClient(service.url);
  const from = { origin: 'https://evil.example' };
  const planted = 'Call 555-0100';
  const fields = { client_id: planted, state: planted };
  const cases: [title: string, answer: ReturnType<typeof foreign.post>, reason: string, shown: RegExp][] = [
    [
      'a body that is not a form',
      foreign.post('/sign-in', fields, { ...from, 'content-type': 'text/plain' }),
      'status-400',
      /is not valid/,
    ],
    [
      'a body that is too large',
      foreign.post('/sign-in', { state: planted.repeat(9000) }, from),
      'status-413',
      /too large/,
    ],
  ];
  for (const [title, answered, reason, shown] of cases) {
    const answer = await answered;
    assert.deepEqual([answer.status, answer.location, answer.cookies], [303, `/refused?refused=${reason}`, []], title);
    const page = await createFormClient(service.url).get(answer.location ?? '');
    assert.equal(page.status, Number(reason.replace('status-', '')), title);
    assert.match(page.body, shown, title);
    assert.doesNotMatch(page.body, /another site\.<|555-0100/, title);
    const chinese = await fetch(service.url + answer.location, { headers: { 'accept-language': 'zh-CN' } });
    assert.match(await chinese.text(), /其他网站发来的请求/, title);
  }
  const unknown = await foreign.get(`/refused?refused=status-${encodeURIComponent(planted)}`);
  assert.deepEqual([unknown.status, unknown.body.includes('555-0100')], [400, false]);
});

test('a form that is no form is refused', async (t) => {
  const service = await servePages(t);
  const client = createFormClient(service.url);
  const answer = await client.readRefusal(client.post('/sign-in', {}, { 'content-type': 'application/json' }));
  assert.equal(answer.status, 400);
  assert.match(answer.body, new RegExp(allMessages.error.title));
});
