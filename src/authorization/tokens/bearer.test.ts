/** Bearer tokens: RFC 6750. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { callApi, postForm, request } from '../../../test/support/authorization/authorization-server.ts';
import { type Case, checkConformance, prepareTokens } from '../../../test/support/authorization/conformance.ts';
import { createSecret } from '../accounts/secret-text.ts';
import { createPersonalToken, revokePersonalToken } from './personal-token.ts';

const USER = '/api/v5/user';

/** The response to a request whose chunked body never arrives. */
async function postHead(url: string, path: string, token: string, type: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const head = [`POST ${path} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${token}`, `Content-Type: ${type}`];
  socket.write([...head, 'Transfer-Encoding: chunked', '', ''].join('\r\n'));
  const [answer] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return String(answer);
}

const cases: Case[] = [
  [
    'B01 B02 Authorization: Bearer on GET /api/v5/user answers the user, whatever the case of the scheme (contract, §2.1)',
    async (bench) => {
      const { tokens, person } = await prepareTokens(bench);
      for (const scheme of ['Bearer', 'bearer', 'BEARER', 'token']) {
        const answer = await request(bench.server.url + USER, {
          headers: { authorization: `${scheme} ${tokens.access_token}` },
        });
        assert.equal(answer.status, 200);
        assert.match(String(answer.json.id), /^[0-9a-f]{24}$/);
        assert.deepEqual([answer.json.login, answer.json.type], [person.user.login, 'User']);
      }
    },
  ],
  [
    'B01 the answer has the fields that clients of GitCode read',
    async (bench) => {
      const { tokens } = await prepareTokens(bench);
      const answer = await request(bench.server.url + USER, { headers: { 'private-token': tokens.access_token } });
      const fields = 'avatar_url bio blog company email followers followers_url following html_url id login name';
      for (const name of [...fields.split(' '), 'email_verified', 'top_languages', 'type', 'url'])
        assert.ok(name in answer.json, name);
      const addresses = ['url', 'html_url', 'followers_url', 'avatar_url'].map((name) => String(answer.json[name]));
      for (const address of addresses.filter((given) => given !== '')) {
        const { status } = await request(address, { headers: { 'private-token': tokens.access_token } });
        assert.ok([200, 303].includes(status), `${address} answered ${status}`);
      }
    },
  ],
  [
    'B03 without a token 401 with a Bearer challenge and no error code (§3.1)',
    async (bench) => {
      const answer = await request(bench.server.url + USER);
      assert.equal(answer.status, 401);
      assert.equal(answer.headers.get('www-authenticate'), 'Bearer realm="trivet"');
      assert.equal(answer.json.error_code_name, 'UNAUTHORIZED');
      assert.match(String(answer.json.trace_id), /^[0-9a-f]{32}$/);
    },
  ],
  [
    'B04 an unknown, garbled, expired or revoked token is 401 invalid_token (§3.1)',
    async (bench) => {
      const { server } = bench;
      const { tokens, credentials } = await prepareTokens(bench);
      const expired = await prepareTokens(bench);
      await postForm(`${server.url}/oauth/revoke`, { token: tokens.access_token }, credentials);
      server.advance(0);
      const bad = [createSecret('access', server.world), 'x', tokens.access_token, tokens.refresh_token];
      for (const token of bad) {
        const answer = await request(server.url + USER, { headers: { authorization: `Bearer ${token}` } });
        assert.equal(answer.status, 401);
        assert.match(answer.headers.get('www-authenticate') ?? '', /error="invalid_token"/);
      }
      assert.equal(await callApi(server, expired.tokens.access_token), 200);
      server.advance(1_296_000_001);
      assert.equal(await callApi(server, expired.tokens.access_token), 401);
    },
  ],
  [
    'B05 a token without the scope is 403 insufficient_scope, with the scope that is needed (§3.1)',
    async (bench) => {
      const { tokens } = await prepareTokens(bench, 'all_hook');
      const headers = { authorization: `Bearer ${tokens.access_token}` };
      const answer = await request(bench.server.url + USER, { headers });
      assert.equal(answer.status, 403);
      assert.match(answer.headers.get('www-authenticate') ?? '', /error="insufficient_scope", scope="all_user"/);
      assert.equal(answer.json.error_code_name, 'FORBIDDEN');
    },
  ],
  [
    'B05 a body in chunks is not read for a token that may not do this, nor one of a type without fields',
    async (bench) => {
      const { server } = bench;
      const [narrow, wide] = await Promise.all([prepareTokens(bench, 'all_hook'), prepareTokens(bench)]);
      const path = `${USER}/access_tokens`;
      const forScope = await postHead(server.url, path, narrow.tokens.access_token, 'application/json');
      assert.match(forScope, /^HTTP\/1\.1 403 [\s\S]*error="insufficient_scope"/);
      const forKind = await postHead(server.url, path, wide.tokens.access_token, 'application/octet-stream');
      assert.match(forKind, /^HTTP\/1\.1 403 [\s\S]*this takes a personal access token/);
    },
  ],
  [
    'B06 two different tokens are 400 invalid_request, wherever they are (§2)',
    async (bench) => {
      const { server } = bench;
      const [one, other] = (await Promise.all([prepareTokens(bench), prepareTokens(bench)])).map(
        ({ tokens }) => tokens.access_token,
      );
      const authorization = { authorization: `Bearer ${one}` };
      const path = `${server.url}${USER}`;
      const answers = [
        await request(`${path}?access_token=${other}`, { headers: authorization }),
        await request(path, { headers: { ...authorization, 'private-token': `${other}` } }),
        await request(`${path}?access_token=${one}&access_token=${other}`),
        await postForm(`${path}/access_tokens?access_token=${one}`, { access_token: `${other}` }),
        await postForm(`${server.url}/oauth/userinfo?access_token=${one}`, { access_token: `${other}` }),
      ];
      for (const answer of answers) {
        assert.equal(answer.status, 400, answer.text);
        assert.match(answer.headers.get('www-authenticate') ?? '', /error="invalid_request"/);
      }
    },
  ],
  [
    'B06 the same token in several places passes: clients of GitCode send it in two headers',
    async (bench) => {
      const { server } = bench;
      const { tokens } = await prepareTokens(bench);
      const token = tokens.access_token;
      const twice = { authorization: `Bearer ${token}`, 'private-token': token };
      const path = `${server.url}${USER}`;
      for (const url of [path, `${path}?access_token=${token}`, `${path}?access_token=${token}&access_token=${token}`])
        assert.equal((await request(url, { headers: twice })).status, 200);
      const posted = await request(`${path}/access_tokens`, {
        method: 'POST',
        headers: { ...twice, 'content-type': 'application/json' },
        body: JSON.stringify({ access_token: token }),
      });
      // Known, and refused for what only a token of the user's own may do.
      assert.equal(posted.status, 403, posted.text);
    },
  ],
  [
    'B07 access_token in the query is taken (contract), is not to be stored and not in the log (§2.3)',
    async (bench) => {
      const { server } = bench;
      const { tokens } = await prepareTokens(bench);
      const answer = await request(`${server.url}${USER}?access_token=${tokens.access_token}`);
      assert.equal(answer.status, 200);
      assert.equal(answer.headers.get('cache-control'), 'no-store');
      assert.ok(!server.lines.join('\n').includes(tokens.access_token));
    },
  ],
  [
    'B07 access_token in a body is taken (contract), be it a form, JSON, or JSON that is called otherwise',
    async (bench) => {
      const { server } = bench;
      const { tokens } = await prepareTokens(bench);
      const form = new FormData();
      form.set('access_token', tokens.access_token);
      const json = JSON.stringify({ access_token: tokens.access_token });
      const bodies: [body: string | FormData, type: string | undefined][] = [
        [form, undefined],
        [`access_token=${tokens.access_token}`, 'application/x-www-form-urlencoded'],
        [json, 'application/json'],
        [json, 'Application/JSON; charset=UTF-8'],
        [json, 'application/x-www-form-urlencoded'],
        [json, 'text/plain'],
      ];
      for (const [body, type] of bodies) {
        const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type };
        const answer = await request(`${server.url}${USER}/access_tokens`, { method: 'POST', body, headers });
        // Known, and refused for what only a token of the user's own may do.
        assert.equal(answer.status, 403, `${type} ${answer.text}`);
      }
      const file = await request(`${server.url}${USER}/access_tokens`, {
        method: 'POST',
        body: json,
        headers: { 'content-type': 'application/octet-stream' },
      });
      assert.equal(file.status, 401);
    },
  ],
  [
    'B08 a revocation shows on the very next call, on every process',
    async (bench) => {
      const { server } = bench;
      const another = await bench.startAnother();
      const { tokens, credentials, person } = await prepareTokens(bench);
      const personal = await createPersonalToken(server.store, server.world, {
        userId: person.user.id,
        name: 'x',
        scopes: ['all_user'],
        expiresAtMs: undefined,
      });
      for (const each of [server, another])
        for (const token of [tokens.access_token, personal.secret]) assert.equal(await callApi(each, token), 200);
      await postForm(`${server.url}/oauth/revoke`, { token: tokens.refresh_token }, credentials);
      assert.equal(await callApi(another, tokens.access_token), 401);
      const target = { userId: person.user.id, tokenId: personal.token.tokenId };
      await revokePersonalToken(another.store, server.world, target);
      assert.equal(await callApi(server, personal.secret), 401);
    },
  ],
];

checkConformance('bearer tokens', cases);
