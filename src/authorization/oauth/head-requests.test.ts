/** HEAD is safe (RFC 9110 §9.2.1): link previews and monitors send it. It must not use up what a GET does only once. */
import assert from 'node:assert/strict';
import { PKCE, prepareRequest } from '../../../test/support/authorization/authorization-requests.ts';
import { authorize, decide, obtainCode, request } from '../../../test/support/authorization/authorization-server.ts';
import { type Case, checkConformance } from '../../../test/support/authorization/conformance.ts';
import { statement } from '../../database/store.ts';

const codesSql = statement<{ readonly n: number }>(
  'count-codes',
  'SELECT COUNT(*) AS n FROM authorization_codes WHERE client_id = $1',
);

const cases: Case[] = [
  [
    'HEAD of a request that passes silently issues no code',
    async (bench) => {
      const { server } = bench;
      const { cookie, fields, person, clientId } = await prepareRequest(bench);
      await obtainCode(server, person, { client_id: clientId, scope: 'all_user' });
      const countCodes = async () => Number((await server.store.read(codesSql, [clientId]))[0]?.n);
      const before = await countCodes();
      const query = new URLSearchParams({ ...fields, scope: 'all_user' }).toString();
      const head = await request(`${server.url}/oauth/authorize?${query}`, { method: 'HEAD', headers: { cookie } });
      assert.deepEqual([head.status, head.headers.get('allow')], [405, 'GET, POST']);
      assert.deepEqual([head.headers.get('location'), head.headers.getSetCookie()], [null, []]);
      assert.equal(await countCodes(), before);
      assert.equal((await authorize(server, cookie, { ...fields, scope: 'all_user' })).status, 302);
      assert.equal(await countCodes(), before + 1);
    },
  ],
  [
    'HEAD of the page with the link to a private scheme leaves the code to the page',
    async (bench) => {
      const { server } = bench;
      const redirectUris = ['com.example.app:/cb'];
      const { cookie, fields } = await prepareRequest(bench, { isPublic: true, redirectUris });
      const { text } = await authorize(server, cookie, { ...fields, ...PKCE });
      const answer = await decide(server, cookie, { page: text, decision: 'allow' });
      const page = `${server.url}${answer.headers.get('location')}`;
      assert.equal((await request(page, { method: 'HEAD', headers: { cookie } })).status, 405);
      assert.match((await request(page, { headers: { cookie } })).text, /com\.example\.app:\/cb\?code=tvt_c_/);
    },
  ],
];

checkConformance('HEAD requests', cases);
