import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hash } from '@node-rs/argon2';
import { createFormClient } from '../../../test/support/network/form-client.ts';
import { addUser, openAs, PASSWORD, servePages, submitSignIn } from '../../../test/support/pages/page-service.ts';
import { statement } from '../../database/store.ts';
import { listEvents } from '../accounts/audit-store.ts';
import { rehashPassword } from '../accounts/password-store.ts';
import { disableUserStatement, findCredentials } from '../accounts/user-store.ts';
import { createFlow } from './flow.ts';
import { countHashes } from './password.ts';
import { createSetupLink } from './setup-routes.ts';

test('a right password signs in, answers 303 and leads home', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  const client = createFormClient(service.url);
  const answer = await submitSignIn(client, 'ADA');
  assert.deepEqual([answer.status, answer.location], [303, '/']);
  assert.match((await client.get('/account')).body, /value="Ada Lovelace"/);
});

test('a person who is not signed in is sent to sign in, and returns to the page', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  const client = createFormClient(service.url);
  const asked = await client.get('/account/tokens?x=1');
  assert.deepEqual([asked.status, asked.location], [303, '/sign-in?return_to=%2Faccount%2Ftokens%3Fx%3D1']);
  const answer = await submitSignIn(client, 'ada', PASSWORD, asked.location!);
  assert.equal(answer.location, '/account/tokens?x=1');
});

test('the sign-in page has no text for a word that every object knows', async (t) => {
  const service = await servePages(t);
  const client = createFormClient(service.url);
  const plain = await client.get('/sign-in');
  const body = (html: string) => html.slice(html.indexOf('<main'), html.indexOf('<form'));
  assert.equal(body((await client.get('/sign-in?done=constructor')).body), body(plain.body));
});

test('a page with an address that the sign-in page cannot carry leads to a sign-in page that answers', async (t) => {
  const service = await servePages(t);
  const client = createFormClient(service.url);
  for (const query of ['a'.repeat(15_000), '%22'.repeat(5000)]) {
    const asked = await client.get(`/account/activity?before=${query}`);
    assert.equal(asked.location, '/sign-in');
    assert.equal((await client.get(asked.location)).status, 200);
  }
});

test('a wrong password, an unknown login and a disabled person get the same page', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  const off = await addUser(service, 'off');
  await service.store.writeAll([disableUserStatement(off.id, 1)]);
  const answers = [];
  for (const [login, password] of [
    ['ada', 'wrong'],
    ['missing', PASSWORD],
    ['off', PASSWORD],
  ] as const) {
    const client = createFormClient(service.url);
    const { status, body } = await client.readRefusal(submitSignIn(client, login, password));
    assert.ok(!client.jar.has('trivet_session'), login);
    answers.push([status, body.replaceAll(login, 'X').replace(/name="csrf_token" value="[^"]+"/g, '')]);
  }
  assert.equal(answers[0]?.[0], 422);
  assert.deepEqual(answers[1], answers[0]);
  assert.deepEqual(answers[2], answers[0]);
});

test('S07 an unknown login costs as many hashes as a wrong password, and a disabled person too', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  const grace = await addUser(service, 'grace');
  await service.store.writeAll([disableUserStatement(grace.id, service.world.nowMs())]);
  const client = createFormClient(service.url);
  const hashesOf = async (login: string) => {
    const before = countHashes();
    assert.equal((await client.readRefusal(submitSignIn(client, login, 'wrong'))).status, 422);
    return countHashes() - before;
  };
  assert.deepEqual([await hashesOf('ada'), await hashesOf('missing'), await hashesOf('grace')], [1, 1, 1]);
});

test('S02 a way back to another site leads home', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  for (const path of ['//evil.example', '/\\evil.example', 'https://evil.example', '/.//evil.example']) {
    const page = `/sign-in?return_to=${encodeURIComponent(path)}`;
    assert.equal((await submitSignIn(createFormClient(service.url), 'ada', PASSWORD, page)).location, '/', path);
  }
});

test('S03 A19 A20 every page forbids framing, foreign content and leaking where one was', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada', true);
  const client = await openAs(service, 'ada');
  const paths = [
    '/',
    '/account',
    '/account/security',
    '/account/tokens',
    '/admin/users',
    '/sign-in',
    '/nowhere',
    '/setup',
  ];
  for (const path of paths) {
    const { headers, body } = await client.get(path);
    const policy = headers.get('content-security-policy') ?? '';
    assert.match(policy, /^default-src 'none'; .*frame-ancestors 'none'/, path);
    assert.doesNotMatch(policy, /unsafe|\*|http/, path);
    assert.equal(headers.get('x-frame-options'), 'DENY', path);
    assert.equal(headers.get('referrer-policy'), 'same-origin', path);
    assert.doesNotMatch(body, /(?:src|href)="(?:https?:)?\/\//, path);
    assert.doesNotMatch(body, /<script>|<style|style="|onclick=/, path);
  }
});

test('S04 the session is another one after signing in, and the one before has ended', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  await addUser(service, 'eve');
  const eve = await openAs(service, 'eve');
  const planted = eve.jar.get('trivet_session')!;
  const victim = createFormClient(service.url, new Map([['trivet_session', planted]]));
  await submitSignIn(victim, 'ada');
  assert.notEqual(victim.jar.get('trivet_session'), planted);
  assert.equal((await eve.get('/account')).status, 303);
  const guessed = createFormClient(service.url, new Map([['trivet_session', 'made-up']]));
  await submitSignIn(guessed, 'ada');
  assert.notEqual(guessed.jar.get('trivet_session'), 'made-up');
});

test('S07 after five failures an account waits at this address, with Retry-After; others do not', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  await addUser(service, 'grace');
  const client = createFormClient(service.url);
  for (let count = 0; count < 5; count += 1)
    assert.equal((await client.readRefusal(submitSignIn(client, 'ada', 'wrong'))).status, 422);
  const refused = await client.readRefusal(submitSignIn(client, 'ada'));
  assert.equal(refused.status, 429);
  assert.equal(refused.headers.get('retry-after'), '1');
  assert.match(refused.body, /Too many attempts/);
  assert.equal((await submitSignIn(createFormClient(service.url), 'grace')).location, '/');
  service.world.moveMs(1000);
  assert.equal((await submitSignIn(client, 'ada')).location, '/');
});

test('S08 S09 neither the database nor the log knows a password, a session or a set-up link', async (t) => {
  const service = await servePages(t);
  const link = new URL((await createSetupLink(service.signIn.context))!);
  const token = link.searchParams.get('token')!;
  const client = createFormClient(service.url);
  const given = { login: 'ada', name: 'Ada', email: '', password: PASSWORD };
  const answer = await client.submit(`/setup?token=${token}`, '/setup', given);
  assert.deepEqual([answer.status, answer.location], [303, '/']);
  await submitSignIn(createFormClient(service.url), 'ada', 'a wrong password');
  const secrets = [PASSWORD, token, client.jar.get('trivet_session')!, 'a wrong password'];
  const tables = ['users', 'sessions', 'tickets', 'audit_events', 'sign_in_attempts'];
  const dump = await Promise.all(
    tables.map(async (table) =>
      JSON.stringify(await service.store.read(statement(`test-${table}`, `SELECT * FROM ${table}`))),
    ),
  );
  for (const secret of secrets) {
    assert.ok(!dump.join().includes(secret), `${secret} is in the database`);
    assert.ok(!service.log().includes(secret), `${secret} is in the log`);
  }
  assert.match(service.log(), /"path":"\/setup"/);
});

test('S10 a new password ends the other sessions and keeps this one', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  const here = await openAs(service, 'ada');
  const there = await openAs(service, 'ada');
  const path = '/account/security';
  const wrong = await here.readRefusal(
    here.submit(path, `${path}/password`, { current: 'wrong', password: 'a new long password' }),
  );
  assert.equal(wrong.status, 422);
  assert.match(wrong.body, /current password is wrong/);
  const short = await here.readRefusal(here.submit(path, `${path}/password`, { current: PASSWORD, password: 'short' }));
  assert.equal(short.status, 422);
  assert.equal((await there.get('/account')).status, 200);
  const done = await here.submit(path, `${path}/password`, { current: PASSWORD, password: 'a new long password' });
  assert.equal(done.location, `${path}?done=changed`);
  assert.equal((await there.get('/account')).status, 303);
  assert.equal((await here.get('/account')).status, 200);
  const stranger = createFormClient(service.url);
  assert.equal((await stranger.readRefusal(submitSignIn(stranger, 'ada'))).status, 422);
  assert.equal((await submitSignIn(createFormClient(service.url), 'ada', 'a new long password')).location, '/');
});

test('S12 sign-ins, refused ones too, and sign-outs are in the audit log with their address', async (t) => {
  const service = await servePages(t);
  const ada = await addUser(service, 'ada');
  await submitSignIn(createFormClient(service.url), 'ada', 'wrong');
  await submitSignIn(createFormClient(service.url), 'missing', 'wrong');
  const client = await openAs(service, 'ada');
  service.world.moveMs(1);
  await client.submit('/account', '/sign-out', {});
  assert.equal((await client.get('/account')).status, 303);
  const events = await listEvents(service.store, { limit: 10 });
  const facts = events.map(({ kind, userId, address, details }) => [kind, userId, address, details?.reason]);
  assert.deepEqual(facts[0], ['sign_out', ada.id, '127.0.0.1', undefined]);
  assert.deepEqual(
    new Set(facts.slice(1).map((fact) => fact.join())),
    new Set([
      ['sign_in', ada.id, '127.0.0.1', undefined].join(),
      ['sign_in_failed', undefined, '127.0.0.1', 'unknown login'].join(),
      ['sign_in_failed', ada.id, '127.0.0.1', 'wrong password'].join(),
    ]),
  );
});

test('a hash made under older parameters is renewed at the sign-in', async (t) => {
  const service = await servePages(t);
  const ada = await addUser(service, 'ada');
  const old = await hash(PASSWORD, { memoryCost: 8192, timeCost: 1, parallelism: 1 });
  const { passwordHash } = (await findCredentials(service.store, 'ada'))!;
  await rehashPassword(service.store, ada.id, passwordHash!, old);
  assert.equal((await submitSignIn(createFormClient(service.url), 'ada')).location, '/');
  assert.match(
    (await findCredentials(service.store, 'ada'))?.passwordHash ?? '',
    /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/,
  );
  assert.equal((await submitSignIn(createFormClient(service.url), 'ada')).location, '/');
});

test('form-action allows the redirects of a client, but only when this service encrypted the permission for this path', async (t) => {
  const service = await servePages(t);
  const returnTo = '/oauth/authorize?client_id=x';
  const flow = createFlow(service.cipher, returnTo, { leadsToClient: true });
  const client = createFormClient(service.url);
  const policyOf = async (query: Record<string, string>) => {
    const { headers } = await client.get(`/sign-in?${new URLSearchParams(query).toString()}`);
    return /form-action [^;]*/.exec(headers.get('content-security-policy') ?? '')?.[0];
  };
  const to_client = flow.hidden.to_client!;
  assert.equal(await policyOf({ return_to: returnTo, to_client }), "form-action 'self' http: https:");
  assert.equal(await policyOf({ return_to: '/oauth/authorize?client_id=y', to_client }), "form-action 'self'");
  assert.equal(await policyOf({ return_to: returnTo, to_client: 'client' }), "form-action 'self'");
});
