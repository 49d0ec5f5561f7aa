/** The token endpoint: RFC 6749 §3.2 and §5. Titles begin with the id of the case, followed by the rule. */
import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { without } from '../../../test/support/authorization/authorization-requests.ts';
import {
  callApi,
  type Fields,
  obtainTokens,
  postForm,
  refresh,
  registerApplication,
  request,
} from '../../../test/support/authorization/authorization-server.ts';
import {
  type Case,
  checkConformance,
  prepareExchange,
  prepareTokens,
} from '../../../test/support/authorization/conformance.ts';
import { createPersonalToken } from '../tokens/personal-token.ts';

/** The status for a body of this length, of which nothing is sent: the service refuses it without reading it. */
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

const cases: Case[] = [
  [
    'T01 parameters in the query and client_secret in the form are taken (contract)',
    async (bench) => {
      const { exchange, tokenUrl } = await prepareExchange(bench);
      const query = new URLSearchParams(without(exchange, 'client_secret')).toString();
      const answer = await postForm(`${tokenUrl}?${query}`, { client_secret: exchange.client_secret ?? '' });
      assert.equal(answer.status, 200, answer.text);
    },
  ],
  [
    'T03 GET and PUT answer 405 with Allow and issue nothing (§3.2)',
    async (bench) => {
      const { exchange, tokenUrl } = await prepareExchange(bench);
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
      const { exchange, tokenUrl, code } = await prepareExchange(bench);
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
      const { exchange, tokenUrl } = await prepareExchange(bench);
      for (const answer of [await postForm(tokenUrl, exchange), await postForm(tokenUrl, exchange)]) {
        assert.match(answer.headers.get('content-type') ?? '', /^application\/json/);
        assert.equal(answer.headers.get('cache-control'), 'no-store');
        assert.equal(answer.headers.get('pragma'), 'no-cache');
      }
    },
  ],
  [
    'T06 T07 the answer is the token object of GitCode, and names its token_type (§5.1)',
    async (bench) => {
      const { exchange, tokenUrl } = await prepareExchange(bench, 'all_user all_hook');
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
    'T13 grant_type missing, unknown, or not allowed for the client: invalid_request, unsupported_grant_type, unauthorized_client (§5.2)',
    async (bench) => {
      const { exchange, tokenUrl } = await prepareExchange(bench);
      const error = async (fields: Fields) => (await postForm(tokenUrl, fields)).json.error;
      assert.equal(await error(without(exchange, 'grant_type')), 'invalid_request');
      assert.equal(await error({ ...exchange, grant_type: 'password' }), 'unsupported_grant_type');
      assert.equal(await error({ ...exchange, grant_type: 'client_credentials' }), 'unauthorized_client');
      assert.equal(await error({ ...exchange, code: '' }), 'invalid_request', 'an empty value is absent (§3.2)');
    },
  ],
  [
    'T24 parameters of any shape get 400 or 413, never 500',
    async (bench) => {
      const { exchange, tokenUrl, clientId } = await prepareExchange(bench);
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
      assert.equal(scoped.status, 200, 'an unknown name is ignored (T28)');
    },
  ],
  [
    'T25 CVE-2026-4282 no kind of secret passes for another at any endpoint',
    async (bench) => {
      const { server } = bench;
      const { exchange, tokenUrl, person, ...application } = await prepareExchange(bench);
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
    'T27 error texts keep to the allowed characters and echo nothing that was sent (§5.2)',
    async (bench) => {
      const { exchange, tokenUrl } = await prepareExchange(bench);
      const marker = 'MARKER"\\<script>';
      for (const name of ['grant_type', 'code', 'client_id', 'client_secret']) {
        const { text, json } = await postForm(tokenUrl, { ...exchange, [name]: marker });
        assert.doesNotMatch(text, /MARKER|at \w+ \(/);
        assert.match(String(json.error_description), /^[\x20-\x21\x23-\x5B\x5D-\x7E]+$/);
      }
    },
  ],
  [
    'T28 unknown parameters are ignored, even twice when another specification allows that (§3.2)',
    async (bench) => {
      const { exchange, tokenUrl } = await prepareExchange(bench);
      const fields = new URLSearchParams({ ...exchange, audience: 'a', foo: 'bar' });
      fields.append('audience', 'b');
      assert.equal((await postForm(tokenUrl, fields)).status, 200);
    },
  ],
  [
    'T28 a client may post its stored token answer back, numbers and all; what is read must be text (§3.2)',
    async (bench) => {
      const { tokens } = await prepareTokens(bench);
      const post = (body: object) =>
        request(`${bench.server.url}/oauth/token`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ ...tokens, grant_type: 'refresh_token', ...body }),
        });
      for (const body of [{ refresh_token: 1 }, { scope: ['all_user'] }, { client_id: 'a\u0000' }]) {
        const refused = await post(body);
        const [[name]] = Object.entries(body) as [[string, unknown]];
        assert.deepEqual([refused.status, refused.json.error], [400, 'invalid_request']);
        assert.match(String(refused.json.error_description), new RegExp(`^The parameter ${name} `));
      }
      const answer = await post({ extra: { nested: [true] }, note: 'a\nb' });
      assert.equal(answer.status, 200, answer.text);
      assert.equal(tokens.expires_in, 1_296_000, 'a number came back');
    },
  ],
  [
    'S09 no secret, token or query reaches the log',
    async (bench) => {
      const { exchange, tokenUrl, clientSecret, code } = await prepareExchange(bench);
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
