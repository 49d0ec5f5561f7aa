/** The consent page, and which answers of it are accepted. */
import assert from 'node:assert/strict';
import {
  assertRedirectedError,
  assertShown,
  PKCE,
  prepareRequest,
  without,
} from '../../../test/support/authorization/authorization-requests.ts';
import {
  authorize,
  createPerson,
  decide,
  type Fields,
  obtainCode,
  obtainTokens,
  postForm,
  postPageForm,
  readHidden,
  readRedirect,
  registerApplication,
  request,
} from '../../../test/support/authorization/authorization-server.ts';
import { type Case, checkConformance } from '../../../test/support/authorization/conformance.ts';
import { setLanguageStatement } from '../account-pages/language-store.ts';
import { listEvents } from '../accounts/audit-store.ts';
import { deleteApplication, setApplicationDisabled } from '../applications/application.ts';

const cases: Case[] = [
  [
    'A15 a refusal is redirected as access_denied with state and iss, and recorded (§4.1.2.1)',
    async (bench) => {
      const { cookie, fields, person } = await prepareRequest(bench);
      const page = await authorize(bench.server, cookie, fields);
      const answer = await decide(bench.server, cookie, { page: page.text, decision: 'deny' });
      assert.equal(answer.status, 303);
      assertRedirectedError(bench, answer, 'access_denied');
      const events = await listEvents(bench.server.store, { userId: person.user.id, limit: 5 });
      assert.ok(events.some((event) => event.kind === 'consent_denied'));
    },
  ],
  [
    'the page is in the language that the person chose in another browser',
    async (bench) => {
      const { cookie, fields, person } = await prepareRequest(bench);
      await bench.server.store.writeAll([setLanguageStatement(person.user.id, 'zh-CN')]);
      const page = await authorize(bench.server, cookie, fields);
      assert.match(page.text, /<html lang="zh-CN">[\s\S]*请求访问您的账号/);
    },
  ],
  [
    'A18 the redirect after the form is 303, never 307 (RFC 9700 §4.12)',
    async (bench) => {
      const { cookie, fields } = await prepareRequest(bench);
      const page = await authorize(bench.server, cookie, fields);
      assert.equal((await decide(bench.server, cookie, { page: page.text, decision: 'allow' })).status, 303);
    },
  ],
  [
    'A19 A20 A21 S03 pages cannot be framed, leak no referrer, load nothing from elsewhere and open to no script',
    async (bench) => {
      const { cookie, fields } = await prepareRequest(bench);
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
      assert.match(page.headers.get('content-security-policy') ?? '', /form-action 'self' http: https:$/);
      const preflight = await request(`${bench.server.url}/oauth/authorize`, {
        method: 'OPTIONS',
        headers: { origin: 'https://evil.example', 'access-control-request-method': 'GET' },
      });
      assert.equal(preflight.headers.get('access-control-allow-origin'), null);
    },
  ],
  [
    'A24 what was allowed before passes silently; a new scope is asked for and marked',
    async (bench) => {
      const { cookie, fields, person, clientId } = await prepareRequest(bench);
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
      const { cookie, fields, clientId, clientSecret } = await prepareRequest(bench);
      const { url } = bench.server;
      const wide = { ...fields, scope: 'all_user all_hook' };
      const page = (await authorize(bench.server, cookie, wide)).text;
      const form = { csrf_token: readHidden(page, 'csrf_token'), request: readHidden(page, 'request'), narrow: '1' };
      const press = (scopes: readonly string[]) => {
        const sent = new URLSearchParams({ ...form, decision: 'allow' });
        for (const scope of scopes) sent.append('scope', scope);
        return postPageForm({ url }, '/oauth/authorize', { fields: sent, headers: { cookie, origin: url } });
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
      const web = await prepareRequest(bench, { isPublic: true });
      await obtainCode(bench.server, web.person, { client_id: web.clientId, ...PKCE });
      assert.equal((await authorize(bench.server, web.cookie, { ...web.fields, ...PKCE })).status, 200);
      const native = await prepareRequest(bench, { isPublic: true, redirectUris: ['http://127.0.0.1/'] });
      const fields = { ...native.fields, ...PKCE };
      const page = await authorize(bench.server, native.cookie, fields);
      await decide(bench.server, native.cookie, { page: page.text, decision: 'allow' });
      assert.equal((await authorize(bench.server, native.cookie, fields)).status, 302);
    },
  ],
  [
    'a private scheme is named as where the answer goes, not a host after it, which is no destination',
    async (bench) => {
      const { server } = bench;
      const { user, cookie } = await createPerson(server);
      const redirectUri = 'com.evil.app://accounts.google.com/cb';
      const form = { isPublic: true, redirectUris: [redirectUri] };
      const { clientId } = await registerApplication(server, form, user.id);
      const query = { client_id: clientId, redirect_uri: redirectUri, response_type: 'code', ...PKCE };
      const page = await authorize(server, cookie, query);
      const leave = await authorize(server, '', { ...query, prompt: 'none' });
      assert.deepEqual([page.status, leave.status], [200, 400]);
      for (const { text } of [page, leave]) {
        const shown = text.replaceAll(/<[^>]*>/g, ' ');
        assert.match(shown, /com\.evil\.app:/);
        assert.doesNotMatch(shown, /google/);
      }
    },
  ],
  [
    'the page says that every scope but a narrow one predicts and reports too',
    async (bench) => {
      const { cookie, fields } = await prepareRequest(bench);
      for (const [scope, isSaid] of [
        ['all_user', true],
        ['openid', true],
        ['all_user predict', true],
        ['all_user predict observe', false],
        ['predict', false],
        ['events:write', false],
      ] as const) {
        const { text } = await authorize(bench.server, cookie, { ...fields, scope });
        assert.equal(/it can ask for predictions and report observations/.test(text), isSaid, scope);
        assert.equal(/cannot do anything that is not listed here/.test(text), !isSaid, scope);
      }
    },
  ],
  [
    'the page names the time of the registration, unless the service itself made it',
    async (bench) => {
      const { cookie, fields } = await prepareRequest(bench);
      assert.match((await authorize(bench.server, cookie, fields)).text, /registered/i);
      const own = { ...fields, ...PKCE, client_id: 'git-credential-oauth', redirect_uri: 'http://127.0.0.1:40123' };
      const page = await authorize(bench.server, cookie, own);
      assert.equal(page.status, 200);
      assert.doesNotMatch(page.text, /registered|1970/i);
    },
  ],
  [
    'A25 an application disabled or deleted between the page and the answer gets no code',
    async (bench) => {
      const { store, world } = bench.server;
      for (const end of [
        (application: Awaited<ReturnType<typeof prepareRequest>>['application']) =>
          setApplicationDisabled(store, world, { application, isDisabled: true, actor: { userId: undefined } }),
        (application: Awaited<ReturnType<typeof prepareRequest>>['application']) =>
          deleteApplication(store, world, { application, actor: { userId: undefined } }),
      ]) {
        const { cookie, fields, application } = await prepareRequest(bench);
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
      const { cookie, fields } = await prepareRequest(bench);
      const page = (await authorize(server, cookie, fields)).text;
      const form = {
        csrf_token: readHidden(page, 'csrf_token'),
        request: readHidden(page, 'request'),
        decision: 'allow',
      };
      const post = (changed: Fields, headers: Fields) =>
        postPageForm(server, '/oauth/authorize', { fields: changed, headers });
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
    'S12 grant, issue and sign-in are recorded for the person',
    async (bench) => {
      const { server } = bench;
      const { person, ...application } = await prepareRequest(bench);
      await obtainTokens(server, person, application);
      const events = await listEvents(server.store, { userId: person.user.id, limit: 20 });
      const kinds = new Set(events.map((event) => event.kind));
      for (const kind of ['sign_in', 'consent_granted', 'token_issued'] as const) assert.ok(kinds.has(kind), kind);
    },
  ],
];

checkConformance('consent', cases);

const ofLifetime: Case[] = [
  [
    'the page names a lifetime below a day as it is, in the language of the person',
    async (bench) => {
      const { cookie, fields, person } = await prepareRequest(bench);
      assert.match((await authorize(bench.server, cookie, fields)).text, /Access lasts 90 min at a time/);
      await bench.server.store.writeAll([setLanguageStatement(person.user.id, 'zh-CN')]);
      assert.match((await authorize(bench.server, cookie, fields)).text, /每次授权的有效期为 90\s?分钟/);
    },
  ],
];
checkConformance('consent to short access', ofLifetime, { environment: { ACCESS_TOKEN_SECONDS: '5400' } });
