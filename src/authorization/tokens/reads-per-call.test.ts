/** Counts how often the most frequent calls query SQLite while no commit happens. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { StatementSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import {
  type AuthorizationServer,
  callApi,
  createPerson,
  postForm,
  startAuthorizationServer,
} from '../../../test/support/authorization/authorization-server.ts';
import { prepareTokens } from '../../../test/support/authorization/conformance.ts';
import { createStorePlace, openTestStore } from '../../../test/support/store/engines.ts';
import { createPersonalToken } from './personal-token.ts';

/** Makes one call. */
type Caller = () => Promise<void>;

const cases: readonly (readonly [title: string, prepare: (server: AuthorizationServer) => Promise<Caller>])[] = [
  [
    'GET /api/v5/user with an access token',
    async (server) => {
      const { tokens } = await prepareTokens({ server });
      return async () => assert.equal(await callApi(server, tokens.access_token), 200);
    },
  ],
  [
    'GET /api/v5/user with a personal token',
    async (server) => {
      const { user } = await createPerson(server);
      const token = { userId: user.id, name: 'laptop', scopes: ['all_user'] as const, expiresAtMs: undefined };
      const { secret } = await createPersonalToken(server.store, server.world, token);
      return async () => assert.equal(await callApi(server, secret), 200);
    },
  ],
  [
    'POST /oauth/introspect',
    async (server) => {
      const { tokens, credentials } = await prepareTokens({ server });
      const url = `${server.url}/oauth/introspect`;
      return async () => {
        const { json } = await postForm(url, { token: tokens.access_token }, credentials);
        assert.equal(json.active, true);
      };
    },
  ],
];

const CALLS = 100;

for (const [title, prepare] of cases)
  test(`${title} asks once whether anybody committed, and reads nothing again`, async (t) => {
    await using parts = new AsyncDisposableStack();
    const place = await createStorePlace('sqlite');
    parts.defer(() => rmSync(place.dataDir, { recursive: true, force: true }));
    const server = parts.use(await startAuthorizationServer(parts.use(await openTestStore(place, {}, {}))));
    const call = await prepare(server);
    await call();
    // The first call records the use of a token or a secret without waiting for it; a later write commits after that one.
    await createPerson(server);
    await call();
    const reads = countReads(t);
    for (let round = 0; round < CALLS; round += 1) await call();
    assert.deepEqual(reads(), { statements: 0, questions: CALLS });
  });

/** Those of this thread. The memory asks with `get` whether anybody committed; all statements run with `all`. */
function countReads(t: TestContext) {
  const statements = t.mock.method(StatementSync.prototype, 'all');
  const questions = t.mock.method(StatementSync.prototype, 'get');
  return () => ({ statements: statements.mock.callCount(), questions: questions.mock.callCount() });
}
