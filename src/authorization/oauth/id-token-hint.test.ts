/** `id_token_hint`: an authorization request for one person (OpenID Connect Core §3.1.2.1). */
import assert from 'node:assert/strict';
import {
  assertRedirectedError,
  prepareRequest,
  readAgainCookie,
} from '../../../test/support/authorization/authorization-requests.ts';
import {
  authorize,
  createPerson,
  obtainCode,
  postForm,
  readRedirect,
  request,
  signIn,
} from '../../../test/support/authorization/authorization-server.ts';
import { type Bench, type Case, checkConformance } from '../../../test/support/authorization/conformance.ts';
import { auditStatement } from '../accounts/audit-store.ts';
import { replaceSigningKeys } from '../tokens/signing-keys.ts';

/** Two people who both use the application, and the identity token that it has of the first. */
async function prepareTwo(bench: Bench) {
  const { server } = bench;
  const { person, fields, clientId, clientSecret } = await prepareRequest(bench);
  const other = await createPerson(server);
  const scope = 'openid all_user';
  const client = { client_id: clientId, client_secret: clientSecret };
  await obtainCode(server, other, { client_id: clientId, scope });
  const code = await obtainCode(server, person, { client_id: clientId, scope });
  const { json } = await postForm(`${server.url}/oauth/token`, { grant_type: 'authorization_code', code, ...client });
  return { person, other, fields: { ...fields, scope, id_token_hint: String(json.id_token) } };
}

async function replaceKeys({ server }: Bench): Promise<void> {
  const event = { kind: 'signing_keys_replaced', address: undefined } as const;
  await replaceSigningKeys(server, auditStatement(event, server.world.nowMs()));
}

/** The same token with other claims, which invalidates its signature. */
function changeClaims(token: string, changes: Readonly<Record<string, string>>): string {
  const [head, body = '', signature] = token.split('.');
  const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as Record<string, unknown>;
  return [head, Buffer.from(JSON.stringify({ ...claims, ...changes })).toString('base64url'), signature].join('.');
}

const cases: Case[] = [
  [
    'prompt=none answers for the person of the hint alone, also when the hint has expired',
    async (bench) => {
      const { server } = bench;
      const { person, other, fields } = await prepareTwo(bench);
      const none = { ...fields, prompt: 'none' };
      assertRedirectedError(bench, await authorize(server, other.cookie, none), 'login_required');
      assertRedirectedError(bench, await authorize(server, '', none), 'login_required');
      server.advance(7_200_000);
      assert.ok(readRedirect(await authorize(server, person.cookie, none)).has('code'));
      assertRedirectedError(bench, await authorize(server, other.cookie, none), 'login_required');
    },
  ],
  [
    'another person has to sign in again; only the one of the hint is then let on',
    async (bench) => {
      const { server } = bench;
      const { person, other, fields } = await prepareTwo(bench);
      for (const { user } of [other, person]) {
        const sent = await authorize(server, other.cookie, fields);
        assert.equal(sent.status, 303);
        const location = new URL(sent.headers.get('location') ?? '', server.url);
        assert.equal(location.pathname, '/sign-in');
        server.advance(1000);
        const cookie = `${await signIn(server, user)}; ${readAgainCookie(sent)}`;
        const back = await request(server.url + location.searchParams.get('return_to'), { headers: { cookie } });
        if (user === person.user) assert.ok(readRedirect(back).has('code'));
        else assertRedirectedError(bench, back, 'login_required');
      }
    },
  ],
  [
    'the sign-in page says in both languages that the application expects another account than that of the session',
    async (bench) => {
      const { server } = bench;
      const { person, other, fields } = await prepareTwo(bench);
      const page = `${server.url}${(await authorize(server, other.cookie, fields)).headers.get('location')}`;
      for (const [language, sentence] of [
        ['en', 'The application expects another account'],
        ['zh-CN', '该应用需要另一个账号'],
      ] as const) {
        const { text } = await request(page, { headers: { cookie: other.cookie, 'accept-language': language } });
        assert.ok(text.includes(sentence), text);
      }
      const { text } = await request(page, { headers: { cookie: person.cookie, 'accept-language': 'en' } });
      assert.doesNotMatch(text, /expects another account/, 'the person of the hint has signed in meanwhile');
      assert.match(text, />Continue</);
    },
  ],
  [
    'the sign-in page invites no other person than that of the hint, who has to sign in again',
    async (bench) => {
      const { server } = bench;
      const { person, fields } = await prepareTwo(bench);
      server.advance(10_000);
      for (const asked of [{ prompt: 'login' }, { prompt: 'select_account' }, { max_age: '5' }])
        for (const [language, sentence] of [
          ['en', 'To go on, sign in again.'],
          ['zh-CN', '如需继续，请重新登录。'],
        ] as const) {
          const again = await authorize(server, person.cookie, { ...fields, ...asked });
          const headers = { cookie: person.cookie, 'accept-language': language };
          const { text } = await request(`${server.url}${again.headers.get('location')}`, { headers });
          assert.ok(text.includes(sentence), text);
        }
    },
  ],
  [
    'the consent page leads to no other account, which could only be refused',
    async (bench) => {
      const { person, fields } = await prepareTwo(bench);
      const { id_token_hint: _hint, ...without } = fields;
      for (const [asked, leads] of [
        [fields, false],
        [without, true],
      ] as const) {
        const { status, text } = await authorize(bench.server, person.cookie, { ...asked, prompt: 'consent' });
        assert.deepEqual([status, text.includes('Use another account')], [200, leads]);
      }
    },
  ],
  [
    'a hint that is no identity token of this client is invalid_request',
    async (bench) => {
      const { server } = bench;
      const { person, fields } = await prepareTwo(bench);
      const foreign = await prepareTwo(bench);
      const [head, body] = fields.id_token_hint.split('.');
      const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${body}.`;
      for (const hint of ['x', `${head}.${body}.AAAA`, unsigned, foreign.fields.id_token_hint]) {
        const answer = await authorize(server, person.cookie, { ...fields, id_token_hint: hint });
        assertRedirectedError(bench, answer, 'invalid_request');
      }
    },
  ],
  [
    'a hint whose key is no longer published says nothing: the person signs in again, also with prompt=none',
    async (bench) => {
      const { server } = bench;
      const { person, other, fields } = await prepareTwo(bench);
      await replaceKeys(bench);
      const silent = await authorize(server, person.cookie, { ...fields, prompt: 'none' });
      assertRedirectedError(bench, silent, 'login_required');
      const forged = { ...fields, id_token_hint: changeClaims(fields.id_token_hint, { sub: other.user.id }) };
      assertRedirectedError(
        bench,
        await authorize(server, other.cookie, { ...forged, prompt: 'none' }),
        'login_required',
      );
      for (const { user, cookie } of [person, other]) {
        const sent = await authorize(server, cookie, fields);
        assert.equal(sent.status, 303);
        const location = new URL(sent.headers.get('location') ?? '', server.url);
        assert.equal(location.pathname, '/sign-in');
        server.advance(1000);
        const fresh = `${await signIn(server, user)}; ${readAgainCookie(sent)}`;
        const back = await request(server.url + location.searchParams.get('return_to'), { headers: { cookie: fresh } });
        assert.ok(readRedirect(back).has('code'));
      }
    },
  ],
  [
    'such a hint of another issuer or for another client is invalid_request',
    async (bench) => {
      const { person, fields } = await prepareTwo(bench);
      await replaceKeys(bench);
      for (const changes of [{ iss: 'https://other.example' }, { aud: 'another' }]) {
        const hint = changeClaims(fields.id_token_hint, changes);
        const answer = await authorize(bench.server, person.cookie, { ...fields, id_token_hint: hint });
        assertRedirectedError(bench, answer, 'invalid_request');
      }
    },
  ],
];

checkConformance('id_token_hint', cases);
