/** The authorization endpoint: RFC 6749 §3.1 and §4.1, RFC 9207 and OpenID Connect §3.1.2. */
import assert from 'node:assert/strict';
import {
  assertRedirectedError,
  assertShown,
  prepareRequest,
  without,
} from '../../../test/support/authorization/authorization-requests.ts';
import {
  authorize,
  CALLBACK,
  decide,
  type Fields,
  obtainCode,
  postForm,
  readHidden,
  readRedirect,
  request,
} from '../../../test/support/authorization/authorization-server.ts';
import { type Case, checkConformance } from '../../../test/support/authorization/conformance.ts';

const cases: Case[] = [
  [
    'A01 a request of a signed-in person shows the consent page, of anybody else the sign-in page (contract)',
    async (bench) => {
      const { cookie, fields } = await prepareRequest(bench);
      const asked = await authorize(bench.server, cookie, fields);
      assert.equal(asked.status, 200);
      assert.match(asked.text, /Example/);
      const anonymous = await authorize(bench.server, '', fields);
      assert.equal(anonymous.status, 303);
      assert.match(anonymous.headers.get('location') ?? '', /^\/sign-in\?/);
      const page = await request(bench.server.url + anonymous.headers.get('location'));
      assert.equal(page.status, 200);
    },
  ],
  [
    'A02 state comes back unchanged, whatever is in it (contract, §4.1.2)',
    async (bench) => {
      const { cookie, fields } = await prepareRequest(bench);
      for (const state of ['a=b&c=d+e f%20%', 'ünï🧊', '"<>\'#?/\\', `${'x='.repeat(1000)}`]) {
        const page = await authorize(bench.server, cookie, { ...fields, state });
        const answer =
          page.status === 302 ? page : await decide(bench.server, cookie, { page: page.text, decision: 'allow' });
        assert.equal(readRedirect(answer).get('state'), state);
      }
    },
  ],
  [
    'A02 a long state survives the way through the sign-in page',
    async (bench) => {
      const { fields } = await prepareRequest(bench);
      const state = '='.repeat(2000);
      const answer = await authorize(bench.server, '', { ...fields, state });
      const page = await request(bench.server.url + answer.headers.get('location'));
      assert.equal(page.status, 200);
      const returnTo = readHidden(page.text, 'return_to').replaceAll('&amp;', '&');
      assert.equal(new URL(returnTo, bench.server.url).searchParams.get('state'), state);
    },
  ],
  [
    'A03 without state none is returned',
    async (bench) => {
      const { cookie, fields } = await prepareRequest(bench);
      const page = await authorize(bench.server, cookie, without(fields, 'state'));
      const answer = await decide(bench.server, cookie, { page: page.text, decision: 'allow' });
      assert.equal(readRedirect(answer).has('state'), false);
    },
  ],
  [
    'A04 an unknown or missing client_id is shown, never redirected (§4.1.2.1)',
    async (bench) => {
      const { cookie, fields } = await prepareRequest(bench);
      for (const bad of [
        { ...fields, client_id: 'app_x' },
        without(fields, 'client_id'),
        { ...fields, client_id: 'a\u0000' },
      ])
        assertShown(await authorize(bench.server, cookie, bad));
    },
  ],
  [
    'A10 response_type missing or unknown is redirected with state and iss (§4.1.2.1)',
    async (bench) => {
      const { cookie, fields } = await prepareRequest(bench);
      const ask = (changed: Fields) => authorize(bench.server, cookie, changed);
      assertRedirectedError(bench, await ask(without(fields, 'response_type')), 'invalid_request');
      assertRedirectedError(bench, await ask({ ...fields, response_type: 'token' }), 'unsupported_response_type');
      assertRedirectedError(bench, await ask({ ...fields, response_mode: 'fragment' }), 'invalid_request');
      assertRedirectedError(bench, await ask({ ...fields, request: 'x' }), 'request_not_supported');
    },
  ],
  [
    'A11 only unknown scopes are invalid_scope; beside a known scope, unknown scopes are left out',
    async (bench) => {
      const { cookie, fields } = await prepareRequest(bench);
      const bad = await authorize(bench.server, cookie, { ...fields, scope: 'gists emails' });
      assertRedirectedError(bench, bad, 'invalid_scope');
      const some = await authorize(bench.server, cookie, { ...fields, scope: 'user_info all_hook' });
      assert.equal(some.status, 200);
      assert.match(some.text, /all_hook/);
      assert.doesNotMatch(some.text, /<code>user_info/);
    },
  ],
  [
    'A12 no scope means all_user, which the page shows and the answer returns (§3.3)',
    async (bench) => {
      const { cookie, fields, clientId, clientSecret } = await prepareRequest(bench);
      const page = await authorize(bench.server, cookie, fields);
      assert.match(page.text, /all_user/);
      const answer = await decide(bench.server, cookie, { page: page.text, decision: 'allow' });
      const tokens = await postForm(`${bench.server.url}/oauth/token`, {
        grant_type: 'authorization_code',
        code: readRedirect(answer).get('code') ?? '',
        client_id: clientId,
        client_secret: clientSecret,
      });
      assert.equal(tokens.json.scope, 'all_user');
    },
  ],
  [
    'A13 a repeated parameter is invalid_request, redirected only when client and address are beyond doubt (§3.1)',
    async (bench) => {
      const { cookie, fields } = await prepareRequest(bench);
      const ask = (extra: string) =>
        request(`${bench.server.url}/oauth/authorize?${new URLSearchParams(fields).toString()}&${extra}`, {
          headers: { cookie },
        });
      assertRedirectedError(bench, await ask('scope=all_user&scope=all_hook'), 'invalid_request');
      assertShown(await ask(`redirect_uri=${encodeURIComponent(CALLBACK)}`));
      assertShown(await ask(`client_id=${fields.client_id}`));
    },
  ],
  [
    'A14 unknown parameters are ignored and an empty value is absent (§3.1)',
    async (bench) => {
      const { cookie, fields } = await prepareRequest(bench);
      assert.equal(
        (await authorize(bench.server, cookie, { ...fields, foo: 'bar', scope: '', prompt: '' })).status,
        200,
      );
    },
  ],
  [
    'A16 success carries iss, equal to the issuer of the metadata (RFC 9207 §2)',
    async (bench) => {
      const { cookie, fields } = await prepareRequest(bench);
      const page = await authorize(bench.server, cookie, fields);
      const answer = await decide(bench.server, cookie, { page: page.text, decision: 'allow' });
      const metadata = await request(`${bench.server.url}/.well-known/oauth-authorization-server`);
      assert.equal(readRedirect(answer).get('iss'), metadata.json.issuer);
    },
  ],
  [
    'A17 codes have at least 256 bits and never repeat (§10.10)',
    async (bench) => {
      const { fields, person, clientId } = await prepareRequest(bench);
      const codes = new Set<string>();
      for (let i = 0; i < 20; i++)
        codes.add(await obtainCode(bench.server, person, { ...fields, client_id: clientId }));
      assert.equal(codes.size, 20);
      for (const code of codes) assert.match(code, /^tvt_c_[0-9A-Za-z]{49}$/);
    },
  ],
  [
    'A22 a request by POST goes the same way (§3.1)',
    async (bench) => {
      const { fields } = await prepareRequest(bench);
      const answer = await postForm(`${bench.server.url}/oauth/authorize`, fields);
      assert.equal(answer.status, 303);
      const location = new URL(answer.headers.get('location') ?? '', bench.server.url);
      assert.deepEqual(Object.fromEntries(location.searchParams), { ...fields });
      assert.equal(location.origin, bench.server.url);
    },
  ],
  [
    'A23 prompt=none answers login_required and consent_required; prompt=consent asks again (OpenID Connect §3.1.2.1)',
    async (bench) => {
      const { cookie, fields, person, clientId } = await prepareRequest(bench);
      const none = { ...fields, prompt: 'none' };
      assertRedirectedError(bench, await authorize(bench.server, '', none), 'login_required');
      assertRedirectedError(bench, await authorize(bench.server, cookie, none), 'consent_required');
      await obtainCode(bench.server, person, { client_id: clientId });
      assert.ok(readRedirect(await authorize(bench.server, cookie, none)).has('code'));
      assert.equal((await authorize(bench.server, cookie, { ...fields, prompt: 'consent' })).status, 200);
      for (const wrong of [{ prompt: 'none login' }, { max_age: 'x' }])
        assertRedirectedError(bench, await authorize(bench.server, cookie, { ...fields, ...wrong }), 'invalid_request');
    },
  ],
  [
    'S02 the way back after signing in leads to this service alone',
    async (bench) => {
      const { server } = bench;
      for (const target of [
        '//evil.example',
        '/\\evil.example',
        'https://evil.example',
        '/%2f%2fevil.example/..//evil.example',
      ]) {
        const page = await request(`${server.url}/sign-in?${new URLSearchParams({ return_to: target }).toString()}`);
        assert.doesNotMatch(readHidden(page.text, 'return_to'), /^(?:\/\/|\/\\|https?:)/);
      }
    },
  ],
];

checkConformance('authorization endpoint', cases);
