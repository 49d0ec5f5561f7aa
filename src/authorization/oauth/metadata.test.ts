/** Metadata: RFC 8414 and RFC 9728. */
import assert from 'node:assert/strict';
import { postForm, request } from '../../../test/support/authorization/authorization-server.ts';
import { type Case, checkConformance } from '../../../test/support/authorization/conformance.ts';

const cases: Case[] = [
  [
    'M01 M02 M03 M05 M06 M07 the metadata names this issuer, working endpoints, iss support, and is open and cacheable (RFC 8414 §3)',
    async (bench) => {
      const { server } = bench;
      const paths = ['/.well-known/oauth-authorization-server', '/.well-known/openid-configuration'];
      for (const path of paths) {
        const answer = await request(server.url + path, { headers: { origin: 'https://spa.example' } });
        assert.equal(answer.status, 200);
        assert.match(answer.headers.get('content-type') ?? '', /^application\/json/);
        assert.equal(answer.headers.get('access-control-allow-origin'), '*');
        assert.match(answer.headers.get('cache-control') ?? '', /max-age/);
        assert.equal(answer.json.issuer, server.url);
        assert.equal(answer.json.authorization_response_iss_parameter_supported, true);
        for (const value of Object.values(answer.json)) {
          assert.notEqual(value, null);
          if (Array.isArray(value)) assert.ok(value.length > 0);
        }
        const endpoints = Object.entries(answer.json).filter(
          ([name]) => name.endsWith('_endpoint') || name === 'jwks_uri',
        );
        assert.equal(endpoints.length, 7);
        for (const [, url] of endpoints) {
          const [get, post] = [await request(String(url)), await postForm(String(url), {})];
          assert.ok(get.status !== 404 && post.status !== 404, String(url));
        }
      }
    },
  ],
  [
    'M04 P07 what the metadata lists is what is taken',
    async (bench) => {
      const { json } = await request(`${bench.server.url}/.well-known/oauth-authorization-server`);
      assert.deepEqual(json.code_challenge_methods_supported, ['S256']);
      assert.deepEqual(json.response_types_supported, ['code']);
      for (const grantType of json.grant_types_supported as string[]) {
        const answer = await postForm(`${bench.server.url}/oauth/token`, { grant_type: grantType });
        assert.notEqual(answer.json.error, 'unsupported_grant_type', grantType);
      }
      for (const grantType of ['password', 'implicit'])
        assert.equal(
          (await postForm(`${bench.server.url}/oauth/token`, { grant_type: grantType })).json.error,
          'unsupported_grant_type',
          'S01 no implicit, no password grant',
        );
    },
  ],
  [
    'M09 the resource API names its authorization server (RFC 9728)',
    async (bench) => {
      const { json } = await request(`${bench.server.url}/.well-known/oauth-protected-resource`);
      assert.deepEqual(json.authorization_servers, [bench.server.url]);
    },
  ],
];

checkConformance('metadata', cases);
