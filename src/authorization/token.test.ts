/** The token endpoint: RFC 6749 §3.2, §4.1.3, §5. Titles begin with the id of the case and say the rule. */
import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import {
  basic,
  CALLBACK,
  callApi,
  type Fields,
  obtainCode,
  obtainTokens,
  postForm,
  refresh,
  registerApplication,
  request,
} from '../../test/support/authorization-server.ts';
import { type Bench, type Case, checkConformance, prepareParties } from '../../test/support/conformance.ts';
import { createPersonalToken } from './personal-token.ts';
import { createSecret } from './secret-text.ts';
import { disableUserStep, enableUserStep } from './user-store.ts';

/** And a code of the one for the other. */
async function prepare(bench: Bench, scope = 'all_user') {
  const { server } = bench;
  const parties = await prepareParties(bench);
  const code = await obtainCode(server, parties.person, { client_id: parties.clientId, scope });
  const tokenUrl = `${server.url}/oauth/token`;
  const exchange: Fields = {
    grant_type: 'authorization_code',
    code,
    client_id: parties.clientId,
    client_secret: parties.clientSecret,
  };
  return { ...parties, code, exchange, tokenUrl };
}

function without(fields: Fields, ...names: string[]): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));
}

/** The status for a body of this length, of which nothing is sent: who refuses it need not read it. */
function announceBody(url: string, length: number): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded', 'content-length': length };
    const call = httpRequest(url, { method: 'POST', headers }, (response) => {
      resolve(response.statusCode);
      call.destroy();
    });
    call.on('error', reject);
    call.flushHeaders();
  });
}

/** The status for a form that comes from another address of this machine. */
function postFrom(localAddress: string, url: string, fields: Fields): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const call = httpRequest(url, { method: 'POST', headers, localAddress }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    call.on('error', reject);
    call.end(new URLSearchParams(fields).toString());
  });
}

const cases: Case[] = [
  [
    'T01 parameters in the query and client_secret in the form are taken (contract)',
    async (bench) => {
      const { exchange, tokenUrl } = await prepare(bench);
      const query = new URLSearchParams(without(exchange, 'client_secret')).toString();
      const answer = await postForm(`${tokenUrl}?${query}`, { client_secret: exchange.client_secret ?? '' });
      assert.equal(answer.status, 200, answer.text);
    },
  ],
  [
    'T02 the client may authenticate in the query, in the form, in JSON or with Basic (contract, §2.3.1)',
    async (bench) => {
      const inQuery = await prepare(bench);
      const query = new URLSearchParams(inQuery.exchange).toString();
      assert.equal((await request(`${inQuery.tokenUrl}?${query}`, { method: 'POST' })).status, 200);
      const inForm = await prepare(bench);
      assert.equal((await postForm(inForm.tokenUrl, inForm.exchange)).status, 200);
      const inJson = await prepare(bench);
      const body = JSON.stringify(inJson.exchange);
      const headers = { 'content-type': 'application/json' };
      assert.equal((await request(inJson.tokenUrl, { method: 'POST', body, headers })).status, 200);
      const withBasic = await prepare(bench);
      const fields = without(withBasic.exchange, 'client_id', 'client_secret');
      const credentials = basic(withBasic.clientId, withBasic.clientSecret);
      assert.equal((await postForm(withBasic.tokenUrl, fields, credentials)).status, 200);
      const multipart = await prepare(bench);
      const form = new FormData();
      for (const [name, value] of Object.entries(multipart.exchange)) form.set(name, value);
      assert.equal((await request(multipart.tokenUrl, { method: 'POST', body: form })).status, 200);
    },
  ],
  [
    'T03 GET and PUT answer 405 with Allow and issue nothing (§3.2)',
    async (bench) => {
      const { exchange, tokenUrl } = await prepare(bench);
      const query = new URLSearchParams(exchange).toString();
      for (const method of ['GET', 'PUT']) {
        const answer = await request(`${tokenUrl}?${query}`, { method });
        assert.equal(answer.status, 405);
        assert.equal(answer.headers.get('allow'), 'POST');
        assert.equal(answer.json.access_token, undefined);
      }
      assert.equal((await postForm(tokenUrl, exchange)).status, 200, 'the code is still good');
    },
  ],
  [
    'T04 a parameter sent twice, or in the query and in the form, is invalid_request (§3.2)',
    async (bench) => {
      const { exchange, tokenUrl, code } = await prepare(bench);
      const twice = new URLSearchParams(exchange);
      twice.append('code', code);
      for (const answer of [await postForm(tokenUrl, twice), await postForm(`${tokenUrl}?code=${code}`, exchange)]) {
        assert.equal(answer.status, 400);
        assert.equal(answer.json.error, 'invalid_request');
      }
    },
  ],
  [
    'T05 success and error are JSON in UTF-8 with no-store and Pragma no-cache (§5.1)',
    async (bench) => {
      const { exchange, tokenUrl } = await prepare(bench);
      for (const answer of [await postForm(tokenUrl, exchange), await postForm(tokenUrl, exchange)]) {
        assert.match(answer.headers.get('content-type') ?? '', /^application\/json/);
        assert.equal(answer.headers.get('cache-control'), 'no-store');
        assert.equal(answer.headers.get('pragma'), 'no-cache');
      }
    },
  ],
  [
    'T06 T07 the answer is the token object of the contract, and names its token_type (§5.1)',
    async (bench) => {
      const { exchange, tokenUrl } = await prepare(bench, 'all_user all_hook');
      const { json } = await postForm(tokenUrl, exchange);
      assert.equal(typeof json.access_token, 'string');
      assert.equal(typeof json.refresh_token, 'string');
      assert.equal(json.expires_in, 1_296_000);
      assert.equal(json.scope, 'all_user all_hook');
      assert.match(String(json.created_at), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      assert.equal(String(json.token_type).toLowerCase(), 'bearer');
    },
  ],
  [
    'T08 a wrong secret with Basic is 401 invalid_client with a Basic challenge (§5.2), and the code lives on',
    async (bench) => {
      const { exchange, tokenUrl, clientId } = await prepare(bench);
      const fields = without(exchange, 'client_id', 'client_secret');
      const answer = await postForm(tokenUrl, fields, basic(clientId, 'wrong'));
      assert.equal(answer.status, 401);
      assert.equal(answer.json.error, 'invalid_client');
      assert.match(answer.headers.get('www-authenticate') ?? '', /^Basic /);
      assert.equal((await postForm(tokenUrl, exchange)).status, 200);
    },
  ],
  [
    'T09 T10 a wrong secret in the form and an unknown client get one and the same answer',
    async (bench) => {
      const { exchange, tokenUrl } = await prepare(bench);
      const wrong = await postForm(tokenUrl, { ...exchange, client_secret: 'wrong' });
      const unknown = await postForm(tokenUrl, { ...exchange, client_id: 'app_nobody' });
      assert.equal(wrong.status, 401);
      assert.deepEqual(wrong.json, unknown.json);
      assert.equal(unknown.status, 401);
    },
  ],
  [
    'T11 two ways of client authentication at once, or two client ids, are invalid_request (§2.3)',
    async (bench) => {
      const { exchange, tokenUrl, clientId, clientSecret } = await prepare(bench);
      const both = await postForm(tokenUrl, exchange, basic(clientId, clientSecret));
      assert.deepEqual([both.status, both.json.error], [400, 'invalid_request']);
      const other = { ...without(exchange, 'client_secret'), client_id: 'app_other' };
      const differing = await postForm(tokenUrl, other, basic(clientId, clientSecret));
      assert.deepEqual([differing.status, differing.json.error], [400, 'invalid_request']);
    },
  ],
  [
    'T12 malformed Basic credentials are 401 invalid_client, never 500',
    async (bench) => {
      const { exchange, tokenUrl } = await prepare(bench);
      const fields = without(exchange, 'client_id', 'client_secret');
      const values = ['Basic', 'Basic ', 'Basic !!!', `Basic ${btoa('nocolon')}`, `Basic ${btoa(':x')}`];
      for (const authorization of [...values, `Basic ${btoa('a%zz:b')}`, `Basic ${btoa('a:\u0000')}`]) {
        const answer = await postForm(tokenUrl, fields, { authorization });
        assert.ok([400, 401].includes(answer.status), `${authorization}: ${answer.status}`);
      }
    },
  ],
  [
    'T13 grant_type missing, unknown, or not allowed for the client: invalid_request, unsupported_grant_type, unauthorized_client (§5.2)',
    async (bench) => {
      const { exchange, tokenUrl } = await prepare(bench);
      const error = async (fields: Fields) => (await postForm(tokenUrl, fields)).json.error;
      assert.equal(await error(without(exchange, 'grant_type')), 'invalid_request');
      assert.equal(await error({ ...exchange, grant_type: 'password' }), 'unsupported_grant_type');
      assert.equal(await error({ ...exchange, grant_type: 'client_credentials' }), 'unauthorized_client');
      assert.equal(await error({ ...exchange, code: '' }), 'invalid_request', 'an empty value is absent (§3.2)');
    },
  ],
  [
    'T14 an unknown, a garbled and an expired code are invalid_grant with one description (§5.2)',
    async (bench) => {
      const { exchange, tokenUrl } = await prepare(bench);
      const unknown = await postForm(tokenUrl, { ...exchange, code: createSecret('code', bench.server.world) });
      const garbled = await postForm(tokenUrl, { ...exchange, code: 'x' });
      bench.server.advance(61_000);
      const expired = await postForm(tokenUrl, exchange);
      for (const answer of [unknown, garbled, expired]) {
        assert.equal(answer.status, 400);
        assert.equal(answer.json.error, 'invalid_grant');
        assert.deepEqual(answer.json, unknown.json);
      }
    },
  ],
  [
    "T15 CVE-2026-16089 a code is bound to its client: another client's valid credentials get invalid_grant and revoke nothing (§4.1.3)",
    async (bench) => {
      const { exchange, tokenUrl } = await prepare(bench);
      const stranger = await registerApplication(bench.server);
      const stolen = { ...exchange, client_id: stranger.clientId, client_secret: stranger.clientSecret };
      assert.equal((await postForm(tokenUrl, stolen)).json.error, 'invalid_grant');
      const answer = await postForm(tokenUrl, exchange);
      assert.equal(answer.status, 200);
      assert.equal((await postForm(tokenUrl, stolen)).json.error, 'invalid_grant');
      assert.equal(await callApi(bench.server, String(answer.json.access_token)), 200);
    },
  ],
  [
    'T16 T17 redirect_uri may be left out (contract); when sent it must be the authorized one (§4.1.3)',
    async (bench) => {
      const absent = await prepare(bench);
      assert.equal((await postForm(absent.tokenUrl, absent.exchange)).status, 200);
      const same = await prepare(bench);
      assert.equal((await postForm(same.tokenUrl, { ...same.exchange, redirect_uri: CALLBACK })).status, 200);
      const other = await prepare(bench);
      const answer = await postForm(other.tokenUrl, { ...other.exchange, redirect_uri: `${CALLBACK}/` });
      assert.equal(answer.json.error, 'invalid_grant');
    },
  ],
  [
    'T18 one of 50 concurrent redemptions on two processes succeeds (§4.1.2)',
    async (bench) => {
      const { exchange } = await prepare(bench);
      const servers = [bench.server, await bench.startAnother()];
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, i) => postForm(`${servers[i % 2]?.url}/oauth/token`, exchange)),
      );
      const statuses = answers.map((answer) => answer.status);
      assert.equal(statuses.filter((status) => status === 200).length, 1);
      assert.equal(statuses.filter((status) => status === 400).length, 49);
    },
  ],
  [
    'T19 a replay with valid credentials is invalid_grant and revokes every token issued from the code (§4.1.2)',
    async (bench) => {
      const { exchange, tokenUrl } = await prepare(bench);
      const first = (await postForm(tokenUrl, exchange)).json;
      const renewed = (await refresh(bench.server, String(first.refresh_token))).json;
      assert.equal((await postForm(tokenUrl, exchange)).json.error, 'invalid_grant');
      assert.equal(await callApi(bench.server, String(first.access_token)), 401);
      assert.equal(await callApi(bench.server, String(renewed.access_token)), 401);
      assert.equal((await refresh(bench.server, String(renewed.refresh_token))).json.error, 'invalid_grant');
    },
  ],
  [
    'T20 a replay with a wrong secret, verifier or redirect_uri revokes nothing',
    async (bench) => {
      const { exchange, tokenUrl } = await prepare(bench);
      const { access_token: token } = (await postForm(tokenUrl, exchange)).json;
      assert.equal((await postForm(tokenUrl, { ...exchange, client_secret: 'wrong' })).status, 401);
      assert.equal((await postForm(tokenUrl, { ...exchange, code_verifier: 'v'.repeat(43) })).status, 400);
      assert.equal((await postForm(tokenUrl, { ...exchange, redirect_uri: 'https://evil.example/' })).status, 400);
      assert.equal(await callApi(bench.server, String(token)), 200);
    },
  ],
  [
    'T22 CVE-2026-9798 a person disabled after the consent gets invalid_grant, and tokens issued before stop',
    async (bench) => {
      const { exchange, tokenUrl, person, ...application } = await prepare(bench);
      const { server } = bench;
      const earlier = await obtainTokens(server, person, application);
      await server.store.writeAll([disableUserStep(person.user.id, server.world.nowMs())]);
      assert.equal((await postForm(tokenUrl, exchange)).json.error, 'invalid_grant');
      assert.equal((await refresh(server, earlier.refresh_token)).json.error, 'invalid_grant');
      assert.equal(await callApi(server, earlier.access_token), 401);
      await server.store.writeAll([enableUserStep(person.user.id)]);
      assert.equal(await callApi(server, earlier.access_token), 200);
    },
  ],
  [
    'T23 a granted scope narrower than the asked one is returned (§5.1)',
    async (bench) => {
      const { exchange, tokenUrl } = await prepare(bench, 'all_hook user_info projects');
      assert.equal((await postForm(tokenUrl, exchange)).json.scope, 'all_hook');
    },
  ],
  [
    'T24 parameters of any shape get 400 or 413, never 500',
    async (bench) => {
      const { exchange, tokenUrl, clientId } = await prepare(bench);
      const json = (value: unknown) => ({
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: typeof value === 'string' ? value : JSON.stringify(value),
      });
      const form = { 'content-type': 'application/x-www-form-urlencoded' };
      const tries: RequestInit[] = [
        json({ ...exchange, code: ['a'] }),
        json({ ...exchange, scope: { a: 'b' } }),
        json({ ...exchange, code: 7 }),
        json({ ...exchange, client_id: 'a\u0000b' }),
        json(`{"grant_type":"refresh_token","refresh_token":"\\ud800"}`),
        json(`{"grant_type":"refresh_token","client_id":"\\ud800","refresh_token":"x"}`),
        json('[1]'),
        json('{'),
        json('null'),
        { method: 'POST', headers: form, body: 'grant_type=%zz&code=%' },
        { method: 'POST', headers: form, body: `grant_type=authorization_code&client_id=${clientId}%00&code=%FF%FE` },
        { method: 'POST', headers: form, body: `grant_type=refresh_token&refresh_token=${'x'.repeat(100_000)}` },
        { method: 'POST', headers: { 'content-type': 'text/plain' }, body: 'hello' },
        { method: 'POST', headers: { 'content-type': 'multipart/form-data; boundary=x' }, body: 'junk' },
      ];
      for (const init of tries) {
        const { status } = await request(tokenUrl, init);
        assert.ok([400, 401, 413].includes(status), `${JSON.stringify(init).slice(0, 150)}: ${status}`);
      }
      assert.equal(await announceBody(tokenUrl, 1_100_000), 413);
      const scoped = await postForm(tokenUrl, { ...exchange, 'scope[a]': 'b' });
      assert.equal(scoped.status, 200, 'a name nobody knows is ignored (T28)');
    },
  ],
  [
    'T25 CVE-2026-4282 no kind of secret passes for another at any endpoint',
    async (bench) => {
      const { server } = bench;
      const { exchange, tokenUrl, person, ...application } = await prepare(bench);
      const tokens = await obtainTokens(server, person, application);
      const personal = await createPersonalToken(server.store, server.world, {
        userId: person.user.id,
        name: 'test',
        scopes: ['all_user'],
        expiresAtMs: undefined,
      });
      const secrets = [
        tokens.access_token,
        tokens.refresh_token,
        personal.secret,
        exchange.code ?? '',
        application.clientSecret,
      ];
      const device = 'urn:ietf:params:oauth:grant-type:device_code';
      for (const secret of secrets) {
        const asCode = secret === exchange.code ? undefined : await postForm(tokenUrl, { ...exchange, code: secret });
        const asRefresh = secret === tokens.refresh_token ? undefined : await refresh(server, secret);
        const asDevice = await postForm(tokenUrl, { ...exchange, grant_type: device, device_code: secret });
        for (const answer of [asCode, asRefresh, asDevice]) assert.notEqual(answer?.status, 200);
        const isBearer = secret === tokens.access_token || secret === personal.secret;
        assert.equal(await callApi(server, secret), isBearer ? 200 : 401);
      }
    },
  ],
  [
    'T26 failures are limited per client and address with 429 and Retry-After; the same client elsewhere and another client are unaffected',
    async (bench) => {
      const { exchange, tokenUrl } = await prepare(bench);
      const wrong = { ...exchange, client_secret: 'wrong' };
      for (let attempt = 0; attempt < 20; attempt++) assert.equal((await postForm(tokenUrl, wrong)).status, 401);
      const limited = await postForm(tokenUrl, wrong);
      assert.equal(limited.status, 429);
      assert.ok(Number(limited.headers.get('retry-after')) >= 1);
      assert.equal(await postFrom('127.0.0.2', tokenUrl, exchange), 200, 'the same client elsewhere');
      const other = await prepare(bench);
      assert.equal((await postForm(other.tokenUrl, other.exchange)).status, 200);
    },
  ],
  [
    'T27 error texts keep to the allowed characters and echo nothing that was sent (§5.2)',
    async (bench) => {
      const { exchange, tokenUrl } = await prepare(bench);
      const marker = 'MARKER"\\<script>';
      for (const name of ['grant_type', 'code', 'client_id', 'client_secret']) {
        const { text, json } = await postForm(tokenUrl, { ...exchange, [name]: marker });
        assert.doesNotMatch(text, /MARKER|at \w+ \(/);
        assert.match(String(json.error_description), /^[\x20-\x21\x23-\x5B\x5D-\x7E]+$/);
      }
    },
  ],
  [
    'T28 parameters nobody knows are ignored, even twice when another specification allows that (§3.2)',
    async (bench) => {
      const { exchange, tokenUrl } = await prepare(bench);
      const fields = new URLSearchParams({ ...exchange, audience: 'a', foo: 'bar' });
      fields.append('audience', 'b');
      assert.equal((await postForm(tokenUrl, fields)).status, 200);
    },
  ],
  [
    'S09 no secret, token or query reaches the log',
    async (bench) => {
      const { exchange, tokenUrl, clientSecret, code } = await prepare(bench);
      const query = new URLSearchParams(exchange).toString();
      const { json } = await request(`${tokenUrl}?${query}`, { method: 'POST' });
      const log = bench.server.lines.join('\n');
      assert.match(log, /\/oauth\/token/);
      for (const secret of [clientSecret, code, String(json.access_token), String(json.refresh_token)])
        assert.ok(!log.includes(secret));
    },
  ],
  [
    'RFC 6749 §4.4 a client with client_credentials gets a token for itself, without refresh token and without a person',
    async (bench) => {
      const { server } = bench;
      const { clientId, clientSecret } = await registerApplication(server, {
        grantTypes: ['client_credentials'],
        redirectUris: [],
      });
      const answer = await postForm(`${server.url}/oauth/token`, {
        grant_type: 'client_credentials',
        client_id: clientId,
        client_secret: clientSecret,
        scope: 'all_user',
      });
      assert.equal(answer.status, 200, answer.text);
      assert.equal(answer.json.refresh_token, undefined);
      assert.equal(await callApi(server, String(answer.json.access_token)), 403);
      const identity = await server.area.verifyToken(String(answer.json.access_token));
      assert.deepEqual([identity?.userId, identity?.isAdmin], [clientId, false]);
    },
  ],
];

checkConformance('token endpoint', cases);
