/** A leaked signing key is replaced by command while the service runs: its tokens end in every process at once. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import { createLocalJWKSet, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from 'jose';
import { realWorld } from '../../src/world.ts';
import {
  type AuthorizationEndpoint,
  callApi,
  createPerson,
  obtainCode,
  postForm,
  registerApplication,
  request,
  signIn,
} from '../support/authorization/authorization-server.ts';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { type Program, startProgram } from '../support/programs/start-program.ts';
import { createStorePlace, engines, findReasonToSkip, openTestStore } from '../support/store/engines.ts';

const ISSUER = 'http://id.example.test';

async function readKeys({ httpUrl }: Program): Promise<JSONWebKeySet> {
  return (await request(`${httpUrl}/oauth/jwks`)).json as unknown as JSONWebKeySet;
}

const listKids = ({ keys }: JSONWebKeySet) => keys.map(({ kid }) => kid);

function verify(token: string, keys: JSONWebKeySet) {
  return jwtVerify(token, createLocalJWKSet(keys), { issuer: ISSUER });
}

for (const engine of engines)
  test(`a signing key that has leaked is replaced at once in every process (${engine})`, {
    skip: findReasonToSkip(engine),
  }, async (t) => {
    const { dataDir, databaseUrl } = await createStorePlace(engine);
    t.after(() => rmSync(dataDir, { recursive: true, force: true }));
    const env = {
      TRIVET_DATA_DIR: dataDir,
      ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
      SECRET_KEYS: Buffer.alloc(32, 7).toString('base64'),
      AUTH_URL: ISSUER,
      LOG_LEVEL: 'error',
    };
    await using programs = new AsyncDisposableStack();
    const start = async () => programs.use(await startProgram(env, dataDir));
    // One data folder has one service; its other process is the command line.
    const one = await start();
    const all = engine === 'postgres' ? [one, await start()] : [one];
    const store = programs.use(await openTestStore({ dataDir, databaseUrl }));
    const at = ({ httpUrl: url }: Program): AuthorizationEndpoint => ({ url, store, world: realWorld });
    const { user } = await createPerson(at(one), 'ada');
    const { clientId, clientSecret } = await registerApplication(at(one));
    const issue = async (program: Program) => {
      const cookie = await signIn(at(program), user);
      const code = await obtainCode(at(program), { user, cookie }, { client_id: clientId, scope: 'openid all_user' });
      const client = { client_id: clientId, client_secret: clientSecret };
      const { json } = await postForm(`${program.httpUrl}/oauth/token`, {
        grant_type: 'authorization_code',
        code,
        ...client,
      });
      return { idToken: String(json.id_token), accessToken: String(json.access_token) };
    };

    const before = await Promise.all(all.map(issue));
    const leaked = listKids(await readKeys(one));
    for (const { idToken } of before) await verify(idToken, await readKeys(one));

    const replaced = await runTrivet(['signing-key', 'replace', '--json'], { env });
    assert.equal(replaced.code, 0, replaced.stderr);
    assert.match(replaced.stderr, /until it reads \/oauth\/jwks again/);
    const { kid, replaced: ended } = JSON.parse(replaced.stdout) as { kid: string; replaced: string[] };
    assert.deepEqual(new Set(ended), new Set(leaked));

    for (const program of all) {
      const keys = await readKeys(program);
      assert.deepEqual(listKids(keys), [kid]);
      for (const { idToken } of before)
        await assert.rejects(verify(idToken, keys), { code: 'ERR_JWKS_NO_MATCHING_KEY' });
      const { idToken } = await issue(program);
      assert.equal(decodeProtectedHeader(idToken).kid, kid, 'the new key signs at once');
      await verify(idToken, keys);
    }
    assert.equal(await callApi(at(one), before[0]!.accessToken), 200, 'access tokens are not signed');

    const listed = await runTrivet(['signing-key', 'list'], { env });
    assert.match(listed.stdout, new RegExp(`${kid} +signs`));
    const audit = await runTrivet(['audit', '--kind', 'signing_keys_replaced', '--json'], { env });
    assert.match(audit.stdout, /"by":"command line"/);
  });
