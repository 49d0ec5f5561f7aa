/** Device codes (RFC 8628). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Answer,
  createPerson,
  decide,
  type Fields,
  postForm,
  readHidden,
  refresh,
  registerApplication,
  request,
  type SignedIn,
} from '../../../test/support/authorization/authorization-server.ts';
import { type Bench, type Case, checkConformance } from '../../../test/support/authorization/conformance.ts';
import { statement } from '../../database/store.ts';
import { disableUserStatement } from '../accounts/user-store.ts';
import { parseUserCode } from './device.ts';

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

const hideDeviceCodesSql = statement('test-hide-device-codes', 'ALTER TABLE device_codes RENAME TO hidden_codes');
const showDeviceCodesSql = statement('test-show-device-codes', 'ALTER TABLE hidden_codes RENAME TO device_codes');
const hideSigningKeysSql = statement('test-hide-signing-keys', 'ALTER TABLE signing_keys RENAME TO hidden_keys');
const showSigningKeysSql = statement('test-show-signing-keys', 'ALTER TABLE hidden_keys RENAME TO signing_keys');

async function prepare({ server }: Bench, scope = 'all_user all_hook') {
  const person = await createPerson(server);
  const { clientId } = await registerApplication(server, {
    isPublic: true,
    redirectUris: [],
    grantTypes: ['device_code', 'refresh_token'],
  });
  const codes = (await postForm(`${server.url}/oauth/device`, { client_id: clientId, scope })).json;
  const poll = () => {
    const fields = { grant_type: DEVICE_GRANT, client_id: clientId, device_code: String(codes.device_code) };
    return postForm(`${server.url}/oauth/token`, fields);
  };
  return { person, clientId, codes, poll };
}

async function type({ server }: Bench, { cookie }: SignedIn, userCode: string): Promise<Answer> {
  const page = await request(`${server.url}/device`, { headers: { cookie } });
  const fields = { csrf_token: readHidden(page.text, 'csrf_token'), user_code: userCode };
  const answer = await postForm(`${server.url}/device`, fields, { cookie, origin: server.url });
  const location = answer.headers.get('location') ?? '';
  if (answer.status !== 303) return answer;
  assert.match(location, /^\/device\?(request|refused)=/, 'no page answers a form');
  return request(server.url + location, { headers: { cookie } });
}

async function answerDevice(bench: Bench, person: SignedIn, userCode: string, decision: 'allow' | 'deny') {
  const shown = await type(bench, person, userCode);
  return decide(bench.server, person.cookie, { page: shown.text, decision, path: '/device' });
}

const device: Case[] = [
  [
    'D01 the device gets a pair of codes, an address and an interval; the user code has no vowels and nothing ambiguous (RFC 8628 §3.2, §6.1)',
    async (bench) => {
      const { codes } = await prepare(bench);
      assert.match(String(codes.user_code), /^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
      assert.equal(codes.verification_uri, `${bench.server.url}/device`);
      assert.equal(codes.verification_uri_complete, `${bench.server.url}/device?user_code=${String(codes.user_code)}`);
      assert.deepEqual([codes.expires_in, codes.interval], [900, 5]);
    },
  ],
  [
    'the code stays when the person uses another account, or the session ended before the code or the decision was sent',
    async (bench) => {
      const { url } = bench.server;
      const { person, codes } = await prepare(bench);
      const { cookie } = person;
      const userCode = String(codes.user_code);
      const back = `/sign-in?${new URLSearchParams({ return_to: `/device?user_code=${userCode}` }).toString()}`;
      const page = await request(`${url}/device`, { headers: { cookie } });
      const typed = { csrf_token: readHidden(page.text, 'csrf_token'), user_code: userCode.toLowerCase() };
      const send = (fields: Fields, headers: Fields = { cookie }) =>
        postForm(`${url}/device`, fields, { origin: url, ...headers });
      const shownAt = (await send(typed)).headers.get('location') ?? '';
      const shown = await request(url + shownAt, { headers: { cookie } });
      assert.ok(shown.text.includes(`href="${back}"`), shown.text);
      const names = ['csrf_token', 'request', 'user_code'];
      const decided = Object.fromEntries(names.map((name) => [name, readHidden(shown.text, name)]));
      await postForm(`${url}/sign-out`, typed, { cookie, origin: url });
      for (const [late, answer] of [
        ['the code', await send({ ...typed, user_code: userCode })],
        ['the decision', await send({ ...decided, decision: 'allow' })],
        ['the decision of a browser that was signed out', await send({ ...decided, decision: 'allow' }, {})],
        ['the page of the decision', await request(url + shownAt, { headers: { cookie } })],
      ] as const)
        assert.equal(answer.headers.get('location'), back, late);
      const foreign = await send({ ...decided, decision: 'allow' }, { origin: 'https://evil.example' });
      assert.match(foreign.headers.get('location') ?? '', /^\/refused\?/, 'another site');
    },
  ],
  [
    'a poll that fails for the signing keys spends no device code, and succeeds when it is sent again',
    async (bench) => {
      const { store } = bench.server;
      const { person, codes, poll } = await prepare(bench, 'openid all_user');
      await answerDevice(bench, person, String(codes.user_code), 'allow');
      await store.write(hideSigningKeysSql);
      const failed = await poll();
      await store.write(showSigningKeysSql);
      assert.ok(failed.status >= 500, failed.text);
      const { status, json } = await poll();
      assert.deepEqual([status, typeof json.id_token], [200, 'string']);
    },
  ],
  [
    'a client at one address may start 60 times a minute, then waits with 429 and Retry-After; another client does not',
    async (bench) => {
      const { clientId } = await prepare(bench);
      const start = () => postForm(`${bench.server.url}/oauth/device`, { client_id: clientId });
      for (let count = 1; count < 60; count++) assert.equal((await start()).status, 200);
      const limited = await start();
      assert.equal(limited.status, 429);
      assert.ok(Number(limited.headers.get('retry-after')) >= 1);
      await prepare(bench);
    },
  ],
  [
    'D02 D03 pending, then slow_down for who asks too often, and five seconds more from then on (§3.5)',
    async (bench) => {
      const { poll } = await prepare(bench);
      const error = async () => (await poll()).json.error;
      assert.equal(await error(), 'authorization_pending');
      assert.equal(await error(), 'slow_down');
      bench.server.advance(6_000);
      assert.equal(await error(), 'slow_down', 'ten seconds now');
      bench.server.advance(16_000);
      assert.equal(await error(), 'authorization_pending');
    },
  ],
  [
    'D04 an allowed device gets tokens once (§3.5)',
    async (bench) => {
      const { poll, person, codes } = await prepare(bench);
      const done = await answerDevice(bench, person, String(codes.user_code), 'allow');
      assert.deepEqual([done.status, done.headers.get('location')], [303, '/device?done=approved']);
      const page = await request(`${bench.server.url}/device?done=approved`, { headers: { cookie: person.cookie } });
      assert.deepEqual([page.status, /name="user_code"/.test(page.text)], [200, false]);
      const answers = await Promise.all(Array.from({ length: 10 }, poll));
      assert.equal(answers.filter((answer) => answer.status === 200).length, 1);
      const granted = answers.find((answer) => answer.status === 200);
      assert.equal(granted?.json.scope, 'all_user all_hook');
      assert.equal((await refresh(bench.server, String(granted?.json.refresh_token))).status, 200);
    },
  ],
  [
    'D05 D06 a refused device gets access_denied, an expired one expired_token (§3.5)',
    async (bench) => {
      const refused = await prepare(bench);
      await answerDevice(bench, refused.person, String(refused.codes.user_code), 'deny');
      assert.equal((await refused.poll()).json.error, 'access_denied');
      const late = await prepare(bench);
      bench.server.advance(901_000);
      assert.equal((await late.poll()).json.error, 'expired_token');
      const expired = await type(bench, late.person, String(late.codes.user_code));
      assert.equal(expired.status, 400);
      assert.match(expired.text, /This code is unknown or has expired/);
      assert.ok(expired.text.includes(`value="${String(late.codes.user_code)}"`), 'what was typed is kept');
    },
  ],
  [
    'D07 the page names the application and the scopes, and takes the code in any case and spacing (§3.3, §6.1)',
    async (bench) => {
      const { person, codes } = await prepare(bench);
      const typed = String(codes.user_code).toLowerCase().replace('-', ' ');
      const page = await type(bench, person, typed);
      assert.equal(page.status, 200);
      assert.match(page.text, /Example[\s\S]*all_user[\s\S]*all_hook/);
      assert.match(page.headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/);
      const complete = await request(String(codes.verification_uri_complete), { headers: { cookie: person.cookie } });
      assert.ok(complete.text.includes(String(codes.user_code)), 'shown, not yet decided');
      const anonymous = await request(String(codes.verification_uri_complete));
      assert.match(anonymous.headers.get('location') ?? '', /^\/sign-in\?/);
    },
  ],
  [
    'CVE-2026-16103 a person disabled before the poll gets nothing; a foreign client neither',
    async (bench) => {
      const { server } = bench;
      const { poll, person, codes } = await prepare(bench);
      const another = await registerApplication(server, {
        isPublic: true,
        redirectUris: [],
        grantTypes: ['device_code'],
      });
      const fields = { grant_type: DEVICE_GRANT, client_id: another.clientId, device_code: String(codes.device_code) };
      assert.equal((await postForm(`${server.url}/oauth/token`, fields)).json.error, 'invalid_grant');
      assert.equal((await answerDevice(bench, person, String(codes.user_code), 'allow')).status, 303);
      await server.store.writeAll([disableUserStatement(person.user.id, server.world.nowMs())]);
      assert.equal((await poll()).json.error, 'invalid_grant');
    },
  ],
  [
    'a refused code is shown to the session that typed it alone, and a refused decision leads to the page of the code',
    async (bench) => {
      const { server } = bench;
      const [ada, eve] = [await createPerson(server), await createPerson(server)];
      const page = await request(`${server.url}/device`, { headers: { cookie: eve.cookie } });
      const csrf_token = readHidden(page.text, 'csrf_token');
      const post = (fields: Fields) =>
        postForm(`${server.url}/device`, { csrf_token, ...fields }, { cookie: eve.cookie, origin: server.url });
      const open = async (answer: Answer, { cookie }: SignedIn) =>
        request(server.url + (answer.headers.get('location') ?? ''), { headers: { cookie } });
      const refused = await post({ user_code: 'CALL 555-0100' });
      assert.match((await open(refused, eve)).text, /CALL 555-0100/);
      const foreign = await open(refused, ada);
      assert.deepEqual([foreign.status, /CALL 555-0100|unknown or has expired/.test(foreign.text)], [200, false]);
      const decided = await post({ request: 'made-up', decision: 'allow' });
      assert.equal(decided.status, 303);
      const shown = await open(decided, eve);
      assert.deepEqual([shown.status, /This page is too old/.test(shown.text)], [403, true]);
    },
  ],
  [
    'a second click on Allow leads to what the first one decided, and tells another person nothing',
    async (bench) => {
      const { server } = bench;
      const { person, codes, poll } = await prepare(bench);
      const userCode = String(codes.user_code);
      const [shown, forOther] = [await type(bench, person, userCode), await createPerson(server)];
      const shownToOther = await type(bench, forOther, userCode);
      const send = (decision: 'allow' | 'deny') =>
        decide(server, person.cookie, { page: shown.text, decision, path: '/device' });
      for (const decision of ['allow', 'allow', 'deny'] as const)
        assert.equal((await send(decision)).headers.get('location'), '/device?done=approved');
      const other = await decide(server, forOther.cookie, {
        page: shownToOther.text,
        decision: 'deny',
        path: '/device',
      });
      assert.match(other.text, /unknown or has expired/);
      assert.equal((await poll()).status, 200);
      assert.equal((await send('allow')).headers.get('location'), '/device?done=approved');
    },
  ],
  [
    'D08 guesses of user codes are limited with 429 (§5.1)',
    async (bench) => {
      const { person } = await prepare(bench);
      const answers: Answer[] = [];
      for (let guess = 0; guess < 12; guess++) answers.push(await type(bench, person, 'BCDF-BCDF'));
      assert.ok(answers.some(({ status }) => status === 400));
      const limited = answers.at(-1);
      assert.equal(limited?.status, 429);
      assert.ok(Number(limited?.headers.get('retry-after')) >= 1);
      assert.match(limited?.text ?? '', /Too many attempts/);
    },
  ],
  [
    'D08 guesses that are sent at once are limited too, and right codes do not count',
    async (bench) => {
      const { server } = bench;
      const { person, codes } = await prepare(bench);
      const headers = { cookie: person.cookie, 'x-forwarded-for': '192.0.2.8' };
      const page = await request(`${server.url}/device`, { headers });
      const guess = async (user_code: string) => {
        const fields = { csrf_token: readHidden(page.text, 'csrf_token'), user_code };
        const answer = await postForm(`${server.url}/device`, fields, { ...headers, origin: server.url });
        return (await request(server.url + (answer.headers.get('location') ?? ''), { headers })).status;
      };
      for (let round = 0; round < 12; round++) assert.equal(await guess(String(codes.user_code)), 200);
      const statuses = await Promise.all(Array.from({ length: 60 }, () => guess('BCDF-BCDF')));
      const refused = [400, 429].map((status) => statuses.filter((each) => each === status).length);
      assert.deepEqual(refused, [10, 50]);
    },
  ],
  [
    'a user code that the database could not check is no guess',
    async (bench) => {
      const { server } = bench;
      const { person, codes } = await prepare(bench);
      const headers = { cookie: person.cookie, 'x-forwarded-for': '192.0.2.9' };
      const page = await request(`${server.url}/device`, { headers });
      const fields = { csrf_token: readHidden(page.text, 'csrf_token'), user_code: String(codes.user_code) };
      const send = () => postForm(`${server.url}/device`, fields, { ...headers, origin: server.url });
      await server.store.write(hideDeviceCodesSql);
      for (let attempt = 0; attempt < 11; attempt++) {
        const { status, headers: answered } = await send();
        assert.ok(status >= 500 || (answered.get('location') ?? '').startsWith('/refused'), String(attempt));
      }
      await server.store.write(showDeviceCodesSql);
      assert.match((await send()).headers.get('location') ?? '', /^\/device\?request=/);
    },
  ],
];

checkConformance('device codes', device);

test('a user code is read as a person types it', () => {
  assert.equal(parseUserCode(' bcdf-ghjk '), 'BCDFGHJK');
  assert.equal(parseUserCode('BCDF-GHJA'), undefined);
  assert.equal(parseUserCode('BCDF'), undefined);
});
