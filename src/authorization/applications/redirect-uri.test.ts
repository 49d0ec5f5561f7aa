/** An answer goes to a registered address only: RFC 6749 §3.1.2, RFC 8252 §7 and RFC 9700 §2.1. */
import assert from 'node:assert/strict';
import {
  assertShown,
  PKCE,
  prepareRequest,
  without,
} from '../../../test/support/authorization/authorization-requests.ts';
import {
  authorize,
  decide,
  readRedirect,
  registerApplication,
  request,
} from '../../../test/support/authorization/authorization-server.ts';
import { type Case, checkConformance } from '../../../test/support/authorization/conformance.ts';
import { statement } from '../../database/store.ts';
import { updateApplication } from './application.ts';
import { findApplication } from './application-store.ts';

const setRedirectUrisSql = statement(
  'set-redirect-uris',
  'UPDATE applications SET redirect_uris = $2 WHERE client_id = $1',
);

const cases: Case[] = [
  [
    'A05 A06 a redirect_uri that is missing or differs in any character is shown, never redirected (RFC 9700 §2.1)',
    async (bench) => {
      const { cookie, fields } = await prepareRequest(bench);
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
      const { cookie, fields } = await prepareRequest(bench, { redirectUris });
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
        'https:client.example/cb',
        'https:/client.example/cb',
        'https:///client.example/cb',
        'https://cli%65nt.example/cb',
        'http:127.0.0.1/cb',
        'http://0x7f.1/cb',
      ])
        await assert.rejects(registerApplication(bench.server, { redirectUris: [uri] }), /redirect URI/, uri);
      await registerApplication(bench.server, { redirectUris: ['com.example.app:/cb'], isPublic: true });
    },
  ],
  [
    'a scheme or a host in capitals cannot be registered: many clients write it in lower case, which never matches',
    async (bench) => {
      for (const uri of ['HTTPS://client.example/cb', 'https://Client.Example/cb', 'HTTP://LOCALHOST:3000/cb'])
        await assert.rejects(registerApplication(bench.server, { redirectUris: [uri] }), {
          message: `Cannot register the redirect URI: it must have its scheme and host in lower case, as in "${uri.toLowerCase()}", got "${uri}"`,
        });
      const redirectUris = ['COM.example.app:/cb'];
      const privateScheme = registerApplication(bench.server, { redirectUris, isPublic: true });
      await assert.rejects(privateScheme, /"com\.example\.app:\/cb"/);
      await registerApplication(bench.server, { redirectUris: ['https://client.example/Cb?Q=%3A'] });
    },
  ],
  [
    'a redirect URI from before capitals were refused stays, and is compared as it is (RFC 3986 §3.1, §6.2.1)',
    async (bench) => {
      const { server } = bench;
      const { cookie, fields, clientId } = await prepareRequest(bench);
      const redirectUris = ['HTTPS://Client.example:443/cb'];
      await server.store.write(setRedirectUrisSql, [clientId, JSON.stringify(redirectUris)]);
      const application = (await findApplication(server.store, clientId))!;
      const change = { redirectUris, name: 'Renamed' };
      await updateApplication(server.store, server.world, { application, change, actor: { userId: undefined } });
      const asked = { ...fields, redirect_uri: redirectUris[0]! };
      assertShown(await authorize(server, cookie, { ...asked, redirect_uri: redirectUris[0]!.toLowerCase() }));
      const page = await authorize(server, cookie, asked);
      const answer = await decide(server, cookie, { page: page.text, decision: 'allow' });
      assert.equal(answer.status, 303);
      assert.ok(answer.headers.get('location')?.startsWith(`${redirectUris[0]}?code=`));
    },
  ],
  [
    "A09 a registered query is kept, and a parameter of ours takes its namesake's place (§3.1.2)",
    async (bench) => {
      const { cookie, fields } = await prepareRequest(bench, {
        redirectUris: ['https://client.example/cb?tenant=7&state=old'],
      });
      const page = await authorize(bench.server, cookie, fields);
      const answer = await decide(bench.server, cookie, { page: page.text, decision: 'allow' });
      const parameters = readRedirect(answer);
      assert.deepEqual([parameters.getAll('tenant'), parameters.getAll('state')], [['7'], ['s1']]);
    },
  ],
  [
    'a private-use scheme is reached by a page with a link, since browsers refuse it as the end of a form',
    async (bench) => {
      const { cookie, fields } = await prepareRequest(bench, { isPublic: true, redirectUris: ['com.example.app:/cb'] });
      const page = await authorize(bench.server, cookie, { ...fields, ...PKCE });
      const answer = await decide(bench.server, cookie, { page: page.text, decision: 'allow' });
      assert.equal(answer.status, 303);
      const shown = await request(`${bench.server.url}${answer.headers.get('location')}`, { headers: { cookie } });
      assert.match(shown.text, /href="com\.example\.app:\/cb\?code=tvt_c_/);
    },
  ],
];

checkConformance('redirect URIs', cases);
