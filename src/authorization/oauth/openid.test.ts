/** Identity tokens and userinfo (OpenID Connect Core). */
import assert from 'node:assert/strict';
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose';
import {
  createPerson,
  type Fields,
  obtainCode,
  obtainTokens,
  postForm,
  registerApplication,
  request,
} from '../../../test/support/authorization/authorization-server.ts';
import { type Bench, type Case, checkConformance } from '../../../test/support/authorization/conformance.ts';
import { computeTokenHash } from './protocol/id-token.ts';

async function signInWithOpenId({ server }: Bench, extra: Fields = {}) {
  const person = await createPerson(server);
  const { clientId, clientSecret } = await registerApplication(server);
  const query = { client_id: clientId, scope: 'openid all_user', nonce: 'n-0S6', ...extra };
  const code = await obtainCode(server, person, query);
  const client = { client_id: clientId, client_secret: clientSecret };
  const { json } = await postForm(`${server.url}/oauth/token`, { grant_type: 'authorization_code', code, ...client });
  const jwks = (await request(`${server.url}/oauth/jwks`)).json as unknown as JSONWebKeySet;
  return { person, clientId, json, jwks };
}

const openid: Case[] = [
  [
    'O01 O02 O03 O04 O05 the identity token is signed by a published key and carries iss, sub, aud, nonce, at_hash and auth_time (§2)',
    async (bench) => {
      const { person, clientId, json, jwks } = await signInWithOpenId(bench);
      const verified = await jwtVerify(String(json.id_token), createLocalJWKSet(jwks), {
        issuer: bench.server.url,
        audience: clientId,
        algorithms: ['RS256'],
        currentDate: new Date(bench.server.world.nowMs()),
      });
      assert.equal(verified.payload.sub, person.user.id);
      assert.equal(verified.payload.nonce, 'n-0S6');
      assert.equal(verified.payload.at_hash, computeTokenHash(String(json.access_token)));
      assert.equal(typeof verified.payload.auth_time, 'number');
      assert.ok(!JSON.stringify(jwks).includes('"d"'), 'no private part');
      const again = await signInWithOpenId(bench);
      assert.notEqual(again.person.user.id, person.user.id);
    },
  ],
  [
    'userinfo answers the subject for openid and the profile with all_user, and nothing without openid (§5.3)',
    async (bench) => {
      const { server } = bench;
      const { person, json } = await signInWithOpenId(bench);
      const ask = (token: unknown) =>
        request(`${server.url}/oauth/userinfo`, { headers: { authorization: `Bearer ${String(token)}` } });
      const { user } = person;
      assert.deepEqual((await ask(json.access_token)).json, {
        sub: user.id,
        name: user.name,
        preferred_username: user.login,
        email: user.email,
        email_verified: true,
      });
      const only = await signInWithOpenId(bench, { scope: 'openid' });
      assert.deepEqual((await ask(only.json.access_token)).json, { sub: only.person.user.id });
      const plain = await obtainTokens(server, person, await registerApplication(server));
      assert.equal((await ask(plain.access_token)).status, 403);
      assert.equal((await ask('x')).status, 401);
    },
  ],
];

checkConformance('OpenID Connect', openid);
