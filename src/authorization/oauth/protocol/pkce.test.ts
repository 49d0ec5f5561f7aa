/** PKCE: RFC 7636. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import {
  assertRedirectedError,
  CHALLENGE,
  PKCE,
  prepareRequest,
  VERIFIER,
} from '../../../../test/support/authorization/authorization-requests.ts';
import {
  type Answer,
  authorize,
  createPerson,
  type Fields,
  obtainCode,
  postForm,
} from '../../../../test/support/authorization/authorization-server.ts';
import { type Bench, type Case, checkConformance } from '../../../../test/support/authorization/conformance.ts';

async function exchange({ server }: Bench, fields: Fields): Promise<Answer> {
  return postForm(`${server.url}/oauth/token`, { grant_type: 'authorization_code', ...fields });
}

const cases: Case[] = [
  [
    'P01 with a challenge the right verifier is 200, a wrong or missing one invalid_grant (§4.6)',
    async (bench) => {
      const { person, clientId, clientSecret } = await prepareRequest(bench);
      const client = { client_id: clientId, client_secret: clientSecret };
      const newCode = () => obtainCode(bench.server, person, { client_id: clientId, ...PKCE });
      const right = await exchange(bench, { ...client, code: await newCode(), code_verifier: VERIFIER });
      assert.equal(right.status, 200);
      const wrong = { ...client, code: await newCode(), code_verifier: `${VERIFIER}x` };
      assert.equal((await exchange(bench, wrong)).json.error, 'invalid_grant');
      assert.equal((await exchange(bench, { ...client, code: await newCode() })).json.error, 'invalid_grant');
    },
  ],
  [
    'P02 a verifier for a code without challenge is invalid_grant: the challenge was stripped (RFC 9700 §4.8.2)',
    async (bench) => {
      const { person, clientId, clientSecret } = await prepareRequest(bench);
      const code = await obtainCode(bench.server, person, { client_id: clientId });
      const fields = { client_id: clientId, client_secret: clientSecret, code, code_verifier: VERIFIER };
      assert.equal((await exchange(bench, fields)).json.error, 'invalid_grant');
    },
  ],
  [
    'P03 P04 method absent, plain or unknown, or a challenge of another shape, is invalid_request (§4.4.1)',
    async (bench) => {
      const { cookie, fields } = await prepareRequest(bench);
      const ask = (extra: Fields) => authorize(bench.server, cookie, { ...fields, ...extra });
      for (const extra of [
        { code_challenge: CHALLENGE },
        { code_challenge: CHALLENGE, code_challenge_method: 'plain' },
        { code_challenge: CHALLENGE, code_challenge_method: 'S512' },
        { code_challenge: `${CHALLENGE}=`, code_challenge_method: 'S256' },
        { code_challenge: 'short', code_challenge_method: 'S256' },
        { code_challenge_method: 'S256' },
      ])
        assertRedirectedError(bench, await ask(extra), 'invalid_request');
    },
  ],
  [
    'P05 a verifier has 43 to 128 unreserved characters (§4.1), or those of base64',
    async (bench) => {
      const { person, clientId, clientSecret } = await prepareRequest(bench);
      const tryVerifier = async (verifier: string) => {
        const challenge = hash('sha256', verifier, 'base64url');
        const query = { client_id: clientId, code_challenge: challenge, code_challenge_method: 'S256' };
        const code = await obtainCode(bench.server, person, query);
        const fields = { client_id: clientId, client_secret: clientSecret, code, code_verifier: verifier };
        return (await exchange(bench, fields)).status;
      };
      assert.equal(await tryVerifier('v'.repeat(42)), 400);
      assert.equal(await tryVerifier('v'.repeat(43)), 200);
      assert.equal(await tryVerifier('v'.repeat(128)), 200);
      assert.equal(await tryVerifier('v'.repeat(129)), 400);
      for (const refused of [' ', '!', '%', '\u00e9']) assert.equal(await tryVerifier('v'.repeat(43) + refused), 400);
      assert.equal(await tryVerifier(Buffer.alloc(32, 0xfb).toString('base64')), 200);
    },
  ],
  [
    'P06 a public client must use PKCE, and needs nothing else (RFC 9700 §2.1.1)',
    async (bench) => {
      const { cookie, fields, person, clientId } = await prepareRequest(bench, { isPublic: true });
      assertRedirectedError(bench, await authorize(bench.server, cookie, fields), 'invalid_request');
      const code = await obtainCode(bench.server, person, { client_id: clientId, ...PKCE });
      const answer = await exchange(bench, { client_id: clientId, code, code_verifier: VERIFIER });
      assert.equal(answer.status, 200);
      assert.equal((await exchange(bench, { client_id: clientId, client_secret: 'any', code })).status, 401);
    },
  ],
  [
    'P08 after five wrong verifiers a code is dead',
    async (bench) => {
      const { person, clientId, clientSecret } = await prepareRequest(bench);
      const code = await obtainCode(bench.server, person, { client_id: clientId, ...PKCE });
      const fields = { client_id: clientId, client_secret: clientSecret, code };
      for (let attempt = 0; attempt < 5; attempt++)
        assert.equal((await exchange(bench, { ...fields, code_verifier: 'w'.repeat(43) })).status, 400);
      assert.equal((await exchange(bench, { ...fields, code_verifier: VERIFIER })).status, 400);
    },
  ],
  [
    'git-credential-oauth is registered in advance: public, loopback with an empty path and any port, PKCE',
    async (bench) => {
      const { server } = bench;
      const person = await createPerson(server);
      const query = { client_id: 'git-credential-oauth', redirect_uri: 'http://127.0.0.1:40123', ...PKCE };
      const code = await obtainCode(server, person, { ...query, scope: 'all_repository' });
      const fields = {
        client_id: 'git-credential-oauth',
        redirect_uri: query.redirect_uri,
        code,
        code_verifier: VERIFIER,
      };
      const answer = await exchange(bench, fields);
      assert.equal(answer.status, 200, answer.text);
      assert.equal(answer.json.scope, 'all_repository');
    },
  ],
];

checkConformance('PKCE', cases);
