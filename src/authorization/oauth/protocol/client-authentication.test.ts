/** A client authenticates itself: RFC 6749 §2.3. */
import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { without } from '../../../../test/support/authorization/authorization-requests.ts';
import { basic, type Fields, postForm, request } from '../../../../test/support/authorization/authorization-server.ts';
import { type Case, checkConformance, prepareExchange } from '../../../../test/support/authorization/conformance.ts';
import { waitUntil } from '../../../../test/support/basics/wait-until.ts';
import { listSecrets, markSecretUsedStatement } from '../../applications/application-secret-store.ts';
import { findApplication, markSecretInQueryStatement } from '../../applications/application-store.ts';

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
    'T02 the client may authenticate in the query, in the form, in JSON or with Basic (contract, §2.3.1)',
    async (bench) => {
      const inQuery = await prepareExchange(bench);
      const query = new URLSearchParams(inQuery.exchange).toString();
      assert.equal((await request(`${inQuery.tokenUrl}?${query}`, { method: 'POST' })).status, 200);
      const inForm = await prepareExchange(bench);
      assert.equal((await postForm(inForm.tokenUrl, inForm.exchange)).status, 200);
      const inJson = await prepareExchange(bench);
      const body = JSON.stringify(inJson.exchange);
      const headers = { 'content-type': 'application/json' };
      assert.equal((await request(inJson.tokenUrl, { method: 'POST', body, headers })).status, 200);
      const withBasic = await prepareExchange(bench);
      const fields = without(withBasic.exchange, 'client_id', 'client_secret');
      const credentials = basic(withBasic.clientId, withBasic.clientSecret);
      assert.equal((await postForm(withBasic.tokenUrl, fields, credentials)).status, 200);
      const multipart = await prepareExchange(bench);
      const form = new FormData();
      for (const [name, value] of Object.entries(multipart.exchange)) form.set(name, value);
      assert.equal((await request(multipart.tokenUrl, { method: 'POST', body: form })).status, 200);
    },
  ],
  [
    'T08 a wrong secret with Basic is 401 invalid_client with a Basic challenge (§5.2), and the code lives on',
    async (bench) => {
      const { exchange, tokenUrl, clientId } = await prepareExchange(bench);
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
      const { exchange, tokenUrl } = await prepareExchange(bench);
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
      const { exchange, tokenUrl, clientId, clientSecret } = await prepareExchange(bench);
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
      const { exchange, tokenUrl } = await prepareExchange(bench);
      const fields = without(exchange, 'client_id', 'client_secret');
      const values = ['Basic', 'Basic ', 'Basic !!!', `Basic ${btoa('nocolon')}`, `Basic ${btoa(':x')}`];
      for (const authorization of [...values, `Basic ${btoa('a%zz:b')}`, `Basic ${btoa('a:\u0000')}`]) {
        const answer = await postForm(tokenUrl, fields, { authorization });
        assert.ok([400, 401].includes(answer.status), `${authorization}: ${answer.status}`);
      }
    },
  ],
  [
    'T26 failures are limited per client and address with 429 and Retry-After; the same client elsewhere and another client are unaffected',
    async (bench) => {
      const { exchange, tokenUrl } = await prepareExchange(bench);
      const wrong = { ...exchange, client_secret: 'wrong' };
      for (let attempt = 0; attempt < 20; attempt++) assert.equal((await postForm(tokenUrl, wrong)).status, 401);
      const limited = await postForm(tokenUrl, wrong);
      assert.equal(limited.status, 429);
      assert.ok(Number(limited.headers.get('retry-after')) >= 1);
      assert.equal(await postFrom('127.0.0.2', tokenUrl, exchange), 200, 'the same client elsewhere');
      const other = await prepareExchange(bench);
      assert.equal((await postForm(other.tokenUrl, other.exchange)).status, 200);
    },
  ],
  [
    'T26 failures of others at the same address keep out neither the right secret nor the right refresh token',
    async (bench) => {
      const { exchange, tokenUrl } = await prepareExchange(bench);
      const statusOf = async (fields: Fields) => (await postForm(tokenUrl, fields)).status;
      for (let attempt = 0; attempt < 21; attempt++) await postForm(tokenUrl, { ...exchange, client_secret: 'wrong' });
      const { json } = await postForm(tokenUrl, exchange);
      const guess = { grant_type: 'refresh_token', refresh_token: 'wrong' };
      for (let attempt = 0; attempt < 300; attempt++) await postForm(tokenUrl, guess);
      assert.equal(await statusOf(guess), 429);
      assert.equal(await statusOf({ ...guess, refresh_token: String(json.refresh_token) }), 200);
    },
  ],
  [
    'the times of the use of a secret that a clock ahead has written are replaced',
    async (bench) => {
      const { store, world } = bench.server;
      const { clientId, clientSecret, exchange, tokenUrl } = await prepareExchange(bench);
      const aheadMs = world.nowMs() + 400 * 86_400_000;
      await store.writeAll([
        markSecretUsedStatement(clientId, 1, aheadMs),
        markSecretInQueryStatement(clientId, aheadMs),
      ]);
      const query = new URLSearchParams({ client_id: clientId, client_secret: clientSecret });
      await postForm(`${tokenUrl}?${query.toString()}`, without(exchange, 'client_id', 'client_secret'));
      const seenAtMs = await waitUntil(async () => {
        const seen = (await findApplication(store, clientId))?.secretInQueryAtMs ?? aheadMs;
        return seen < aheadMs ? seen : undefined;
      });
      const [secret] = await listSecrets(store, clientId);
      for (const timeMs of [seenAtMs, secret?.lastUsedAtMs ?? aheadMs])
        assert.ok(Math.abs(world.nowMs() - timeMs) < 3_600_000, `${timeMs}`);
    },
  ],
];

checkConformance('client authentication', cases);
