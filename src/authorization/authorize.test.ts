/** The authorization endpoint: RFC 6749 §3.1 and §4.1, RFC 9207, RFC 9700, and PKCE (RFC 7636). */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import {
  type Answer,
  authorize,
  CALLBACK,
  createPerson,
  decide,
  type Fields,
  obtainCode,
  obtainTokens,
  postForm,
  readHidden,
  readRedirect,
  registerApplication,
  request,
  signIn,
} from '../../test/support/authorization-server.ts';
import { type Bench, type Case, checkConformance } from '../../test/support/conformance.ts';
import { deleteApplication, setApplicationDisabled } from './application.ts';
import { listEvents } from './audit-store.ts';

async function prepare({ server }: Bench, form: Parameters<typeof registerApplication>[1] = {}) {
  const person = await createPerson(server);
  const created = await registerApplication(server, form);
  const redirectUri = form.redirectUris?.[0] ?? CALLBACK;
  const fields: Fields = { client_id: created.clientId, redirect_uri: redirectUri, response_type: 'code', state: 's1' };
  return { ...created, person, cookie: person.cookie, fields };
}

function without(fields: Fields, ...names: string[]): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));
}

/** Shown to a person, sent nowhere. */
function assertShown(answer: Answer, status = 400): void {
  assert.equal(answer.status, status, answer.headers.get('location') ?? answer.text);
  assert.equal(answer.headers.get('location'), null);
  assert.match(answer.headers.get('content-type') ?? '', /^text\/html/);
}

function assertRedirectedError({ server }: Bench, answer: Answer, error: string): void {
  const parameters = readRedirect(answer);
  assert.ok([302, 303].includes(answer.status), `${answer.status} ${answer.text.slice(0, 300)}`);
  assert.deepEqual(
    [parameters.get('error'), parameters.get('state'), parameters.get('iss'), parameters.get('code')],
    [error, 's1', server.url, null],
  );
}

const VERIFIER = 'abcdefghijklmnopqrstuvwxyz-._~0123456789ABCDEFG';
const CHALLENGE = hash('sha256', VERIFIER, 'base64url');
const PKCE: Fields = { code_challenge: CHALLENGE, code_challenge_method: 'S256' };

const requests: Case[] = [
  [
    'A01 a request of a signed-in person shows the consent page, of anybody else the sign-in page (contract)',
    async (bench) => {
      const { cookie, fields } = await prepare(bench);
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
      const { cookie, fields } = await prepare(bench);
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
      const { fields } = await prepare(bench);
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
      const { cookie, fields } = await prepare(bench);
      const page = await authorize(bench.server, cookie, without(fields, 'state'));
      const answer = await decide(bench.server, cookie, { page: page.text, decision: 'allow' });
      assert.equal(readRedirect(answer).has('state'), false);
    },
  ],
  [
    'A04 an unknown or missing client_id is shown, never redirected (§4.1.2.1)',
    async (bench) => {
      const { cookie, fields } = await prepare(bench);
      for (const bad of [
        { ...fields, client_id: 'app_x' },
        without(fields, 'client_id'),
        { ...fields, client_id: 'a\u0000' },
      ])
        assertShown(await authorize(bench.server, cookie, bad));
    },
  ],
  [
    'A05 A06 a redirect_uri that is missing or differs in any character is shown, never redirected (RFC 9700 §2.1)',
    async (bench) => {
      const { cookie, fields } = await prepare(bench);
      assertShown(await authorize(bench.server, cookie, without(fields, 'redirect_uri')));
      for (const uri of [
        'https://client.example/callback/',
        'https://client.example/Callback',
        'https://CLIENT.example/callback',
        'https://client.example/callback?x=1',
        'https://client.example/callback#f',
        'https://client.example:443/callback',
        'https://client.example:8443/callback',
        'https://user@client.example/callback',
        'https://client.example/%63allback',
        'https://client.example/x/../callback',
        'https://client.example.evil.example/callback',
        'http://client.example/callback',
        '//client.example/callback',
        'javascript:alert(1)',
        ' https://client.example/callback',
      ])
        assertShown(await authorize(bench.server, cookie, { ...fields, redirect_uri: uri }));
    },
  ],
  [
    'A07 a loopback IP address may come with any port, and with nothing else changed (RFC 8252 §7.3)',
    async (bench) => {
      const redirectUris = ['http://127.0.0.1/cb', 'http://[::1]:9000/cb', 'http://localhost:3000/cb'];
      const { cookie, fields } = await prepare(bench, { redirectUris });
      const ask = (redirect_uri: string) => authorize(bench.server, cookie, { ...fields, redirect_uri });
      for (const uri of [
        'http://127.0.0.1:51234/cb',
        'http://127.0.0.1/cb',
        'http://[::1]:1/cb',
        'http://localhost:3000/cb',
      ])
        assert.equal((await ask(uri)).status, 200, uri);
      for (const uri of [
        'http://127.0.0.1:51234/cb/',
        'http://127.0.0.1:51234/cb?x',
        'http://u@127.0.0.1:51234/cb',
        'https://127.0.0.1:51234/cb',
        'http://127.0.0.2:51234/cb',
        'http://127.0.0.1:70000/cb',
        'http://127.0.0.1.evil.example/cb',
        'http://localhost:3001/cb',
      ])
        assertShown(await ask(uri));
    },
  ],
  [
    'A08 plain http elsewhere, fragments, wildcards and user information cannot be registered (RFC 9700 §2.1)',
    async (bench) => {
      for (const uri of [
        'http://client.example/cb',
        'https://client.example/cb#x',
        'https://*.example/cb',
        'https://user:pw@client.example/cb',
        'https://client.example/../cb',
        'javascript:alert(1)',
        'data:text/html,x',
        'com.example.app:/cb',
        '/cb',
        'https://client.example/a b',
      ])
        await assert.rejects(registerApplication(bench.server, { redirectUris: [uri] }), /redirect URI/, uri);
      await registerApplication(bench.server, { redirectUris: ['com.example.app:/cb'], isPublic: true });
    },
  ],
  [
    "A09 a registered query is kept, and a parameter of ours takes its namesake's place (§3.1.2)",
    async (bench) => {
      const { cookie, fields } = await prepare(bench, {
        redirectUris: ['https://client.example/cb?tenant=7&state=old'],
      });
      const page = await authorize(bench.server, cookie, fields);
      const answer = await decide(bench.server, cookie, { page: page.text, decision: 'allow' });
      const parameters = readRedirect(answer);
      assert.deepEqual([parameters.getAll('tenant'), parameters.getAll('state')], [['7'], ['s1']]);
    },
  ],
  [
    'A10 response_type missing or unknown is redirected with state and iss (§4.1.2.1)',
    async (bench) => {
      const { cookie, fields } = await prepare(bench);
      const ask = (changed: Fields) => authorize(bench.server, cookie, changed);
      assertRedirectedError(bench, await ask(without(fields, 'response_type')), 'invalid_request');
      assertRedirectedError(bench, await ask({ ...fields, response_type: 'token' }), 'unsupported_response_type');
      assertRedirectedError(bench, await ask({ ...fields, response_mode: 'fragment' }), 'invalid_request');
      assertRedirectedError(bench, await ask({ ...fields, request: 'x' }), 'request_not_supported');
    },
  ],
  [
    'A11 only unknown scopes are invalid_scope; with one that is known the others are left out',
    async (bench) => {
      const { cookie, fields } = await prepare(bench);
      const bad = await authorize(bench.server, cookie, { ...fields, scope: 'user_info projects' });
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
      const { cookie, fields, clientId, clientSecret } = await prepare(bench);
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
      const { cookie, fields } = await prepare(bench);
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
      const { cookie, fields } = await prepare(bench);
      assert.equal(
        (await authorize(bench.server, cookie, { ...fields, foo: 'bar', scope: '', prompt: '' })).status,
        200,
      );
    },
  ],
  [
    'A15 a refusal is redirected as access_denied with state and iss, and recorded (§4.1.2.1)',
    async (bench) => {
      const { cookie, fields, person } = await prepare(bench);
      const page = await authorize(bench.server, cookie, fields);
      const answer = await decide(bench.server, cookie, { page: page.text, decision: 'deny' });
      assert.equal(answer.status, 303);
      assertRedirectedError(bench, answer, 'access_denied');
      const events = await listEvents(bench.server.store, { userId: person.user.id, limit: 5 });
      assert.ok(events.some((event) => event.kind === 'consent_denied'));
    },
  ],
  [
    'A16 success carries iss, equal to the issuer of the metadata (RFC 9207 §2)',
    async (bench) => {
      const { cookie, fields } = await prepare(bench);
      const page = await authorize(bench.server, cookie, fields);
      const answer = await decide(bench.server, cookie, { page: page.text, decision: 'allow' });
      const metadata = await request(`${bench.server.url}/.well-known/oauth-authorization-server`);
      assert.equal(readRedirect(answer).get('iss'), metadata.json.issuer);
    },
  ],
  [
    'A17 codes have at least 256 bits and never repeat (§10.10)',
    async (bench) => {
      const { fields, person, clientId } = await prepare(bench);
      const codes = new Set<string>();
      for (let i = 0; i < 20; i++)
        codes.add(await obtainCode(bench.server, person, { ...fields, client_id: clientId }));
      assert.equal(codes.size, 20);
      for (const code of codes) assert.match(code, /^tvt_c_[0-9A-Za-z]{49}$/);
    },
  ],
  [
    'A18 the redirect after the form is 303, never 307 (RFC 9700 §4.12)',
    async (bench) => {
      const { cookie, fields } = await prepare(bench);
      const page = await authorize(bench.server, cookie, fields);
      assert.equal((await decide(bench.server, cookie, { page: page.text, decision: 'allow' })).status, 303);
    },
  ],
  [
    'A19 A20 A21 S03 pages cannot be framed, leak no referrer, load nothing from elsewhere and open to no script',
    async (bench) => {
      const { cookie, fields } = await prepare(bench);
      const page = await authorize(bench.server, cookie, fields);
      const shown = await authorize(bench.server, cookie, without(fields, 'client_id'));
      for (const { headers, text } of [page, shown]) {
        assert.match(headers.get('content-security-policy') ?? '', /default-src 'none'.*frame-ancestors 'none'/);
        assert.equal(headers.get('x-frame-options'), 'DENY');
        assert.equal(headers.get('referrer-policy'), 'same-origin');
        assert.equal(headers.get('cache-control'), 'no-store');
        assert.equal(headers.get('access-control-allow-origin'), null);
        assert.doesNotMatch(text, /<script|(?:src|<link[^>]*href)="https?:/);
      }
      assert.match(page.headers.get('content-security-policy') ?? '', /form-action 'self' https:\/\/client\.example/);
      const preflight = await request(`${bench.server.url}/oauth/authorize`, {
        method: 'OPTIONS',
        headers: { origin: 'https://evil.example', 'access-control-request-method': 'GET' },
      });
      assert.equal(preflight.headers.get('access-control-allow-origin'), null);
    },
  ],
  [
    'A22 a request by POST goes the same way (§3.1)',
    async (bench) => {
      const { fields } = await prepare(bench);
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
      const { cookie, fields, person, clientId } = await prepare(bench);
      const none = { ...fields, prompt: 'none' };
      assertRedirectedError(bench, await authorize(bench.server, '', none), 'login_required');
      assertRedirectedError(bench, await authorize(bench.server, cookie, none), 'consent_required');
      await obtainCode(bench.server, person, { client_id: clientId });
      assert.ok(readRedirect(await authorize(bench.server, cookie, none)).has('code'));
      assert.equal((await authorize(bench.server, cookie, { ...fields, prompt: 'consent' })).status, 200);
      assertRedirectedError(
        bench,
        await authorize(bench.server, cookie, { ...fields, prompt: 'none login' }),
        'invalid_request',
      );
    },
  ],
  [
    'A23 prompt=login and max_age ask for a fresh sign-in once',
    async (bench) => {
      const { server } = bench;
      const { cookie, fields, person } = await prepare(bench);
      server.advance(10_000);
      for (const extra of [{ prompt: 'login' }, { max_age: '5' }, { max_age: '0' }]) {
        const answer = await authorize(server, cookie, { ...fields, ...extra });
        assert.equal(answer.status, 303);
        const signInUrl = new URL(answer.headers.get('location') ?? '', server.url);
        const returnTo = signInUrl.searchParams.get('return_to') ?? '';
        const stale = await request(server.url + returnTo, { headers: { cookie } });
        assert.equal(stale.status, 303, 'the old session does not do');
        const fresh = await signIn(server, person.user);
        server.advance(10_000);
        assert.equal((await request(server.url + returnTo, { headers: { cookie: fresh } })).status, 200);
      }
      assertRedirectedError(bench, await authorize(server, cookie, { ...fields, max_age: 'x' }), 'invalid_request');
    },
  ],
  [
    'A24 what was allowed before passes silently; a new scope is asked for and marked',
    async (bench) => {
      const { cookie, fields, person, clientId } = await prepare(bench);
      await obtainCode(bench.server, person, { client_id: clientId, scope: 'all_user' });
      assert.equal((await authorize(bench.server, cookie, { ...fields, scope: 'all_user' })).status, 302);
      const wider = await authorize(bench.server, cookie, { ...fields, scope: 'all_user all_hook' });
      assert.equal(wider.status, 200);
      assert.match(wider.text, />new<.*<code>all_hook/s);
      assert.doesNotMatch(wider.text, />new<[^/]*<\/span>[^/]*<code>all_user/);
    },
  ],
  [
    'T23 what the person leaves out of the page is in no token, and is asked for again',
    async (bench) => {
      const { cookie, fields, clientId, clientSecret } = await prepare(bench);
      const { url } = bench.server;
      const wide = { ...fields, scope: 'all_user all_hook' };
      const page = (await authorize(bench.server, cookie, wide)).text;
      const form = { csrf_token: readHidden(page, 'csrf_token'), request: readHidden(page, 'request'), narrow: '1' };
      const press = (scopes: readonly string[]) => {
        const sent = new URLSearchParams({ ...form, decision: 'allow' });
        for (const scope of scopes) sent.append('scope', scope);
        return postForm(`${url}/oauth/authorize`, sent, { cookie, origin: url });
      };
      assert.equal(readRedirect(await press([])).get('error'), 'access_denied', 'nothing chosen is nothing allowed');
      const code = readRedirect(await press(['all_user', 'all_key'])).get('code') ?? '';
      const client = { client_id: clientId, client_secret: clientSecret };
      const answer = await postForm(`${url}/oauth/token`, { grant_type: 'authorization_code', code, ...client });
      assert.equal(answer.json.scope, 'all_user', 'nor is anything granted that was not asked for');
      assert.equal((await authorize(bench.server, cookie, { ...fields, scope: 'all_user' })).status, 302);
      const again = await authorize(bench.server, cookie, wide);
      assert.match(again.text, /used by one person here[\s\S]*value="all_hook" form="decide" checked/);
    },
  ],
  [
    'A24 a public client is shown every time, but for loopback (RFC 8252 §8.6)',
    async (bench) => {
      const web = await prepare(bench, { isPublic: true });
      await obtainCode(bench.server, web.person, { client_id: web.clientId, ...PKCE });
      assert.equal((await authorize(bench.server, web.cookie, { ...web.fields, ...PKCE })).status, 200);
      const native = await prepare(bench, { isPublic: true, redirectUris: ['http://127.0.0.1/'] });
      const fields = { ...native.fields, ...PKCE };
      const page = await authorize(bench.server, native.cookie, fields);
      await decide(bench.server, native.cookie, { page: page.text, decision: 'allow' });
      assert.equal((await authorize(bench.server, native.cookie, fields)).status, 302);
    },
  ],
  [
    'A25 an application disabled or deleted between the page and the answer gets no code',
    async (bench) => {
      const { store, world } = bench.server;
      for (const end of [
        (application: Awaited<ReturnType<typeof prepare>>['application']) =>
          setApplicationDisabled(store, world, { application, isDisabled: true, actor: { userId: undefined } }),
        (application: Awaited<ReturnType<typeof prepare>>['application']) =>
          deleteApplication(store, world, { application, actor: { userId: undefined } }),
      ]) {
        const { cookie, fields, application } = await prepare(bench);
        const page = await authorize(bench.server, cookie, fields);
        await end(application);
        assertShown(await decide(bench.server, cookie, { page: page.text, decision: 'allow' }));
      }
    },
  ],
  [
    'A26 S06 the answer of the page cannot be forged: token, origin, and the request of this session',
    async (bench) => {
      const { server } = bench;
      const { cookie, fields } = await prepare(bench);
      const page = (await authorize(server, cookie, fields)).text;
      const form = {
        csrf_token: readHidden(page, 'csrf_token'),
        request: readHidden(page, 'request'),
        decision: 'allow',
      };
      const post = (changed: Fields, headers: Fields) => postForm(`${server.url}/oauth/authorize`, changed, headers);
      const stranger = await createPerson(server);
      const theirs = (await authorize(server, stranger.cookie, fields)).text;
      const tries: [Fields, Fields][] = [
        [{ ...form, csrf_token: 'wrong' }, { cookie }],
        [without(form, 'csrf_token'), { cookie }],
        [form, { cookie, origin: 'https://evil.example' }],
        [form, { cookie, origin: 'null' }],
        [{ ...form, request: readHidden(theirs, 'request') }, { cookie }],
        [{ ...form, request: 'AAAA' }, { cookie }],
        [form, { cookie: stranger.cookie }],
      ];
      for (const [changed, headers] of tries) assertShown(await post(changed, headers), 403);
      server.advance(3_601_000);
      assertShown(await post(form, { cookie }), 403);
    },
  ],
  [
    'a private-use scheme is reached by a page with a link, since browsers refuse it as the end of a form',
    async (bench) => {
      const { cookie, fields } = await prepare(bench, { isPublic: true, redirectUris: ['com.example.app:/cb'] });
      const page = await authorize(bench.server, cookie, { ...fields, ...PKCE });
      const answer = await decide(bench.server, cookie, { page: page.text, decision: 'allow' });
      assert.equal(answer.status, 200);
      assert.match(answer.text, /href="com\.example\.app:\/cb\?code=tvt_c_/);
    },
  ],
];

async function exchange({ server }: Bench, fields: Fields): Promise<Answer> {
  return postForm(`${server.url}/oauth/token`, { grant_type: 'authorization_code', ...fields });
}

const pkce: Case[] = [
  [
    'P01 with a challenge the right verifier is 200, a wrong or missing one invalid_grant (§4.6)',
    async (bench) => {
      const { person, clientId, clientSecret } = await prepare(bench);
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
      const { person, clientId, clientSecret } = await prepare(bench);
      const code = await obtainCode(bench.server, person, { client_id: clientId });
      const fields = { client_id: clientId, client_secret: clientSecret, code, code_verifier: VERIFIER };
      assert.equal((await exchange(bench, fields)).json.error, 'invalid_grant');
    },
  ],
  [
    'P03 P04 method absent, plain or unknown, or a challenge of another shape, is invalid_request (§4.4.1)',
    async (bench) => {
      const { cookie, fields } = await prepare(bench);
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
      const { person, clientId, clientSecret } = await prepare(bench);
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
      const { cookie, fields, person, clientId } = await prepare(bench, { isPublic: true });
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
      const { person, clientId, clientSecret } = await prepare(bench);
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
  [
    'S12 grant, issue and sign-in are recorded for the person',
    async (bench) => {
      const { server } = bench;
      const { person, ...application } = await prepare(bench);
      await obtainTokens(server, person, application);
      const events = await listEvents(server.store, { userId: person.user.id, limit: 20 });
      const kinds = new Set(events.map((event) => event.kind));
      for (const kind of ['sign_in', 'consent_granted', 'token_issued'] as const) assert.ok(kinds.has(kind), kind);
    },
  ],
];

checkConformance('authorization endpoint', requests);
checkConformance('PKCE and the way to the endpoint', pkce);
