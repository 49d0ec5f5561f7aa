import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { hash } from '@node-rs/argon2';
import { TOTP } from 'otpauth';
import { createFormClient, type FormClient, readHidden } from '../../../test/support/form-client.ts';
import {
  addUser,
  PASSWORD,
  type PageService,
  type PageServiceOptions,
  startPageService,
} from '../../../test/support/page-service.ts';
import { statement } from '../../database/store.ts';
import { listEvents } from '../audit-store.ts';
import { texts } from '../pages/texts.ts';
import { disableUserStep, findCredentials, rehashPassword } from '../user-store.ts';
import { createFlow } from './flow.ts';
import { countHashes } from './password.ts';
import { parseReturnTo } from './return-to.ts';
import { createSetupLink } from './setup-routes.ts';

async function start(t: TestContext, options?: PageServiceOptions): Promise<PageService> {
  const service = await startPageService(options);
  t.after(() => service[Symbol.asyncDispose]());
  return service;
}

function signIn(client: FormClient, login: string, password = PASSWORD, page = '/sign-in') {
  return client.submit(page, '/sign-in', { login, password });
}

async function openAs(service: PageService, login: string): Promise<FormClient> {
  const client = createFormClient(service.url);
  assert.equal((await signIn(client, login)).status, 303);
  return client;
}

test('a right password signs in, answers 303 and leads home', async (t) => {
  const service = await start(t);
  await addUser(service, 'ada');
  const client = createFormClient(service.url);
  const answer = await signIn(client, 'ADA');
  assert.deepEqual([answer.status, answer.location], [303, '/']);
  assert.match((await client.get('/')).body, /Hello, Ada Lovelace/);
});

test('whoever is not signed in is asked to, and comes back to the page', async (t) => {
  const service = await start(t);
  await addUser(service, 'ada');
  const client = createFormClient(service.url);
  const asked = await client.get('/account/tokens?x=1');
  assert.deepEqual([asked.status, asked.location], [303, '/sign-in?return_to=%2Faccount%2Ftokens%3Fx%3D1']);
  const answer = await signIn(client, 'ada', PASSWORD, asked.location!);
  assert.equal(answer.location, '/account/tokens?x=1');
});

test('a wrong password, an unknown login and a disabled person get the same page', async (t) => {
  const service = await start(t);
  await addUser(service, 'ada');
  const off = await addUser(service, 'off');
  await service.store.writeAll([disableUserStep(off.id, 1)]);
  const answers = [];
  for (const [login, password] of [
    ['ada', 'wrong'],
    ['nobody', PASSWORD],
    ['off', PASSWORD],
  ] as const) {
    const client = createFormClient(service.url);
    const { status, body } = await signIn(client, login, password);
    assert.ok(!client.jar.has('trivet_session'), login);
    answers.push([status, body.replaceAll(login, 'X').replace(/name="csrf_token" value="[^"]+"/g, '')]);
  }
  assert.equal(answers[0]?.[0], 422);
  assert.deepEqual(answers[1], answers[0]);
  assert.deepEqual(answers[2], answers[0]);
});

test('S07 an unknown login costs as many hashes as a wrong password, and a disabled person too', async (t) => {
  const service = await start(t);
  await addUser(service, 'ada');
  const grace = await addUser(service, 'grace');
  await service.store.writeAll([disableUserStep(grace.id, service.world.nowMs())]);
  const client = createFormClient(service.url);
  const hashesOf = async (login: string) => {
    const before = countHashes();
    assert.equal((await signIn(client, login, 'wrong')).status, 422);
    return countHashes() - before;
  };
  // The hash that unknown people are compared with is made once.
  await hashesOf('anybody');
  assert.deepEqual([await hashesOf('ada'), await hashesOf('nobody'), await hashesOf('grace')], [1, 1, 1]);
});

test('S02 no address of another site is a way back', () => {
  const refused = [
    '//evil.example',
    '/\\evil.example',
    '\\\\evil.example',
    '%2f%2fevil.example',
    'https://evil.example',
    'javascript:alert(1)',
    '/.//evil.example',
    '/..//evil.example',
    '/\t/evil.example',
    '/\n/evil.example',
    '',
    null,
    undefined,
    '/a\\b',
    `/${'a'.repeat(100_000)}`,
  ];
  for (const value of refused) assert.equal(parseReturnTo(value), undefined, String(value).slice(0, 40));
  assert.equal(parseReturnTo('/oauth/authorize?state=%2F%2Fx&a=b#c'), '/oauth/authorize?state=%2F%2Fx&a=b#c');
  assert.equal(parseReturnTo('/%2f%2fevil.example'), '/%2f%2fevil.example');
});

test('S02 a way back to another site leads home', async (t) => {
  const service = await start(t);
  await addUser(service, 'ada');
  for (const path of ['//evil.example', '/\\evil.example', 'https://evil.example', '/.//evil.example']) {
    const page = `/sign-in?return_to=${encodeURIComponent(path)}`;
    assert.equal((await signIn(createFormClient(service.url), 'ada', PASSWORD, page)).location, '/', path);
  }
});

test('S03 A19 A20 every page forbids framing, foreign content and leaking where one was', async (t) => {
  const service = await start(t);
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
  const service = await start(t);
  await addUser(service, 'ada');
  await addUser(service, 'eve');
  const eve = await openAs(service, 'eve');
  const planted = eve.jar.get('trivet_session')!;
  const victim = createFormClient(service.url, new Map([['trivet_session', planted]]));
  await signIn(victim, 'ada');
  assert.notEqual(victim.jar.get('trivet_session'), planted);
  assert.equal((await eve.get('/account')).status, 303);
  const guessed = createFormClient(service.url, new Map([['trivet_session', 'made-up']]));
  await signIn(guessed, 'ada');
  assert.notEqual(guessed.jar.get('trivet_session'), 'made-up');
});

test('S05 over https every cookie is __Host-, Secure, HttpOnly and Lax', async (t) => {
  const service = await start(t, { baseUrl: 'https://id.example.org' });
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
  const service = await start(t);
  await addUser(service, 'ada');
  const client = await openAs(service, 'ada');
  assert.deepEqual([...client.jar.keys()], ['trivet_session']);
});

test('S06 a form without its token, with the token of another, or from another site is refused', async (t) => {
  const service = await start(t);
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
    assert.equal((await ada.post(path, {})).status, 403, `${path} without a token`);
    assert.equal((await ada.post(path, foreign)).status, 403, `${path} with the token of another`);
    for (const origin of ['https://evil.example', 'null', 'http://127.0.0.1:1'])
      assert.equal((await ada.post(path, own, { origin })).status, 403, `${path} from ${origin}`);
  }
  assert.equal((await ada.get('/account')).status, 200);
});

test('S06 the sign-in form itself cannot be forged', async (t) => {
  const service = await start(t);
  await addUser(service, 'eve');
  const victim = createFormClient(service.url);
  await victim.get('/sign-in');
  const eve = createFormClient(service.url);
  const hidden = readHidden((await eve.get('/sign-in')).body, '/sign-in');
  const fields = { login: 'eve', password: PASSWORD };
  assert.equal((await victim.post('/sign-in', { ...hidden, ...fields })).status, 403);
  assert.equal((await victim.post('/sign-in', fields)).status, 403);
  assert.equal((await victim.post('/sign-in', fields, { 'sec-fetch-site': 'cross-site', origin: '' })).status, 403);
});

test('S07 after five failures an account waits at this address, with Retry-After; others do not', async (t) => {
  const service = await start(t);
  await addUser(service, 'ada');
  await addUser(service, 'grace');
  const client = createFormClient(service.url);
  for (let count = 0; count < 5; count += 1) assert.equal((await signIn(client, 'ada', 'wrong')).status, 422);
  const refused = await signIn(client, 'ada');
  assert.equal(refused.status, 429);
  assert.equal(refused.headers.get('retry-after'), '1');
  assert.match(refused.body, /Too many attempts/);
  assert.equal((await signIn(createFormClient(service.url), 'grace')).status, 303);
  service.world.moveMs(1000);
  assert.equal((await signIn(client, 'ada')).status, 303);
});

test('S08 S09 neither the database nor the log knows a password, a session or a set-up link', async (t) => {
  const service = await start(t);
  const link = new URL((await createSetupLink(service.signIn.kit))!);
  const token = link.searchParams.get('token')!;
  const client = createFormClient(service.url);
  const given = { login: 'ada', name: 'Ada', email: '', password: PASSWORD };
  const answer = await client.submit(`/setup?token=${token}`, '/setup', given);
  assert.deepEqual([answer.status, answer.location], [303, '/']);
  await signIn(createFormClient(service.url), 'ada', 'a wrong password');
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
  const service = await start(t);
  await addUser(service, 'ada');
  const here = await openAs(service, 'ada');
  const there = await openAs(service, 'ada');
  const path = '/account/security';
  const wrong = await here.submit(path, `${path}/password`, { current: 'wrong', password: 'a new long password' });
  assert.equal(wrong.status, 422);
  assert.match(wrong.body, /current password is not right/);
  const short = await here.submit(path, `${path}/password`, { current: PASSWORD, password: 'short' });
  assert.equal(short.status, 422);
  assert.equal((await there.get('/account')).status, 200);
  const done = await here.submit(path, `${path}/password`, { current: PASSWORD, password: 'a new long password' });
  assert.equal(done.location, `${path}?done=changed`);
  assert.equal((await there.get('/account')).status, 303);
  assert.equal((await here.get('/account')).status, 200);
  assert.equal((await signIn(createFormClient(service.url), 'ada')).status, 422);
  assert.equal((await signIn(createFormClient(service.url), 'ada', 'a new long password')).status, 303);
});

test('S12 sign-ins, refused ones too, and sign-outs are in the audit log with their address', async (t) => {
  const service = await start(t);
  const ada = await addUser(service, 'ada');
  await signIn(createFormClient(service.url), 'ada', 'wrong');
  await signIn(createFormClient(service.url), 'nobody', 'wrong');
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

test('the set-up link works once, while nobody has an account', async (t) => {
  const service = await start(t);
  const { search } = new URL((await createSetupLink(service.signIn.kit))!);
  const second = new URL((await createSetupLink(service.signIn.kit))!);
  const client = createFormClient(service.url);
  const given = { login: 'root', name: 'Root', email: 'root@example.org', password: PASSWORD };
  const weak = await client.submit(`/setup${search}`, '/setup', { ...given, password: 'short' });
  assert.equal(weak.status, 422);
  assert.match(weak.body, /must be 10 to 256 characters/);
  assert.equal((await client.submit(`/setup${search}`, '/setup', given)).status, 303);
  assert.match((await client.get('/')).body, /Administration/);
  assert.equal((await createFormClient(service.url).get(`/setup${second.search}`)).status, 403);
  assert.equal((await createFormClient(service.url).get('/setup?token=x')).status, 403);
  assert.equal(await createSetupLink(service.signIn.kit), undefined);
});

test('a hash made under older parameters is renewed at the sign-in', async (t) => {
  const service = await start(t);
  const ada = await addUser(service, 'ada');
  const old = await hash(PASSWORD, { memoryCost: 8192, timeCost: 1, parallelism: 1 });
  const { passwordHash } = (await findCredentials(service.store, 'ada'))!;
  await rehashPassword(service.store, ada.id, passwordHash!, old);
  assert.equal((await signIn(createFormClient(service.url), 'ada')).status, 303);
  assert.match(
    (await findCredentials(service.store, 'ada'))?.passwordHash ?? '',
    /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/,
  );
  assert.equal((await signIn(createFormClient(service.url), 'ada')).status, 303);
});

test('the origin that a form may lead to is added to form-action, but only when we sealed it to this path', async (t) => {
  const service = await start(t);
  const returnTo = '/oauth/authorize?client_id=x';
  const flow = createFlow(service.vault, returnTo, 'https://client.example');
  const client = createFormClient(service.url);
  const policyOf = async (query: Record<string, string>) => {
    const { headers } = await client.get(`/sign-in?${new URLSearchParams(query).toString()}`);
    return /form-action [^;]*/.exec(headers.get('content-security-policy') ?? '')?.[0];
  };
  const form_action = flow.hidden.form_action!;
  assert.equal(await policyOf({ return_to: returnTo, form_action }), "form-action 'self' https://client.example");
  assert.equal(await policyOf({ return_to: '/oauth/authorize?client_id=y', form_action }), "form-action 'self'");
  assert.equal(await policyOf({ return_to: returnTo, form_action: 'https://evil.example' }), "form-action 'self'");
});

test('with an authenticator app the password alone does not sign in', async (t) => {
  const service = await start(t);
  await addUser(service, 'ada');
  const { seed, codes } = await turnOnTotp(service, await openAs(service, 'ada'));
  const client = createFormClient(service.url);
  const first = await signIn(client, 'ada', PASSWORD, '/sign-in?return_to=%2Faccount');
  assert.equal(first.location, '/sign-in/second-step?return_to=%2Faccount');
  assert.equal((await client.get('/account')).status, 303);
  const step = (code: string) => client.submit(first.location!, '/sign-in/second-step', { code });
  assert.equal((await step('000000')).status, 422);
  service.world.moveMs(30_000);
  const digits = digitsAt(seed, service.world.nowMs());
  const right = await step(digits);
  assert.deepEqual([right.status, right.location], [303, '/account']);
  assert.equal((await client.get('/account')).status, 200);

  const again = createFormClient(service.url);
  await signIn(again, 'ada');
  const replay = await again.submit('/sign-in/second-step', '/sign-in/second-step', { code: digits });
  assert.equal(replay.status, 422, 'digits count once (RFC 6238 §5.2)');
  const recovery = await again.submit('/sign-in/second-step', '/sign-in/second-step', { code: codes[0]! });
  assert.equal(recovery.status, 303);
  const third = createFormClient(service.url);
  await signIn(third, 'ada');
  assert.equal((await third.submit('/sign-in/second-step', '/sign-in/second-step', { code: codes[0]! })).status, 422);
});

test('the second step is limited, ends after ten minutes, and is worth nothing after a new password', async (t) => {
  const service = await start(t);
  await addUser(service, 'ada');
  const settled = await openAs(service, 'ada');
  const { codes } = await turnOnTotp(service, settled);
  const begin = async () => {
    const client = createFormClient(service.url);
    await signIn(client, 'ada');
    return (code: string) => client.submit('/sign-in/second-step', '/sign-in/second-step', { code });
  };
  const guess = await begin();
  for (let count = 0; count < 5; count += 1) assert.equal((await guess('000000')).status, 422);
  assert.equal((await guess(codes[0]!)).status, 429);
  service.world.moveMs(24 * 3_600_000);

  const late = await begin();
  service.world.moveMs(600_000);
  assert.equal((await late(codes[0]!)).location, '/sign-in');

  const overtaken = await begin();
  const fresh = createFormClient(service.url);
  await signIn(fresh, 'ada');
  assert.equal((await fresh.submit('/sign-in/second-step', '/sign-in/second-step', { code: codes[1]! })).status, 303);
  const path = '/account/security';
  await fresh.submit(path, `${path}/password`, { current: PASSWORD, password: 'a new long password' });
  assert.equal((await overtaken(codes[2]!)).location, '/sign-in');
});

test('turning the second step off asks for the password', async (t) => {
  const service = await start(t);
  await addUser(service, 'ada');
  const client = await openAs(service, 'ada');
  await turnOnTotp(service, client);
  const path = '/account/security';
  assert.equal((await client.submit(path, `${path}/totp/stop`, { totp_password: 'wrong' })).status, 422);
  assert.equal((await signIn(createFormClient(service.url), 'ada')).location, '/sign-in/second-step');
  assert.equal((await client.submit(path, `${path}/totp/stop`, { totp_password: PASSWORD })).status, 303);
  assert.equal((await signIn(createFormClient(service.url), 'ada')).location, '/');
});

test('another way in is opened only soon after signing in', async (t) => {
  const service = await start(t);
  await addUser(service, 'ada');
  const client = await openAs(service, 'ada');
  service.world.moveMs(31 * 60_000);
  const path = '/account/security';
  const answer = await client.submit(path, `${path}/totp`, {});
  assert.equal(answer.location, '/sign-in?return_to=%2Faccount%2Fsecurity&login_hint=ada');
  assert.equal((await client.submit(path, `${path}/passkeys/options`, {})).status, 403);
});

test('a form that is no form is refused', async (t) => {
  const service = await start(t);
  const answer = await createFormClient(service.url).post('/sign-in', {}, { 'content-type': 'application/json' });
  assert.equal(answer.status, 400);
  assert.match(answer.body, new RegExp(texts.error.title));
});

async function turnOnTotp(service: PageService, client: FormClient) {
  const path = '/account/security';
  assert.equal((await client.submit(path, `${path}/totp`, {})).location, `${path}/totp`);
  const { body } = await client.get(`${path}/totp`);
  const seed = /id="totp-key">([A-Z2-7 ]+)</.exec(body)?.[1]?.replaceAll(' ', '') ?? '';
  assert.equal(seed.length, 32);
  const wrong = await client.submit(`${path}/totp`, `${path}/totp/confirm`, { code: '000000' });
  assert.equal(wrong.status, 422);
  const code = digitsAt(seed, service.world.nowMs());
  const on = await client.submit(`${path}/totp`, `${path}/totp/confirm`, { code });
  const codes = [...on.body.matchAll(/<li><code>([^<]+)<\/code>/g)].map((match) => match[1]!);
  assert.equal(codes.length, 10);
  return { seed, codes };
}

function digitsAt(seed: string, timestamp: number): string {
  return new TOTP({ secret: seed }).generate({ timestamp });
}
