/**
 * The database becomes unavailable under the running service: calls that need it report the outage, the others go on, and everything
 * recovers without a restart. TRIVET_LONG=1 makes the outage half a minute long.
 */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import pg from 'pg';
import { realWorld } from '../../src/world.ts';
import {
  type Answer,
  type AuthorizationEndpoint,
  callApi,
  createPerson,
  obtainTokens,
  postForm,
  refresh,
  registerApplication,
  request,
} from '../support/authorization/authorization-server.ts';
import { waitUntil } from '../support/basics/wait-until.ts';
import { startReceiver } from '../support/network/receiver.ts';
import { createDataDir, type Program, startProgram } from '../support/programs/start-program.ts';
import { findReasonToSkip, openTestStore } from '../support/store/engines.ts';
import { createTestDatabase, type PostgresCluster, startPostgresCluster } from '../support/store/postgres-cluster.ts';
import { numberedPush, startPublishingService } from '../support/webhooks/publishing-service.ts';

const AWAY_MS = process.env.TRIVET_LONG === '1' ? 30_000 : 0;
const options = { skip: findReasonToSkip('postgres'), timeout: 240_000 };

interface Outage {
  readonly title: string;
  readonly begin: (cluster: PostgresCluster) => Promise<void> | void;
  readonly end: (cluster: PostgresCluster) => Promise<void> | void;
}

const OUTAGES: readonly Outage[] = [
  { title: 'is killed', begin: (cluster) => cluster.kill(), end: (cluster) => cluster.start() },
  {
    title: 'is frozen with its connections open',
    begin: (cluster) => cluster.freeze(),
    end: (cluster) => cluster.thaw(),
  },
];

async function withProgram(
  run: (place: { program: Program; cluster: PostgresCluster; at: AuthorizationEndpoint }) => Promise<void>,
): Promise<void> {
  await using undo = new AsyncDisposableStack();
  const cluster = await startPostgresCluster({ isDurable: true });
  undo.defer(() => cluster.stop());
  const databaseUrl = await createTestDatabase(cluster.socketDir, 'outage');
  const dataDir = createDataDir();
  undo.defer(() => rmSync(dataDir, { recursive: true, force: true }));
  const store = undo.use(await openTestStore({ dataDir, databaseUrl }));
  const program = undo.use(await startProgram({ DATABASE_URL: databaseUrl, LOG_LEVEL: 'warn' }));
  await run({ program, cluster, at: { url: program.httpUrl, store, world: realWorld } });
}

/** RFC 6749 has no code for this at the token endpoint, so the service uses that of §4.1.2.1. */
function assertOAuthOutage(answer: Answer): void {
  assert.deepEqual([answer.status, answer.json.error], [503, 'temporarily_unavailable'], answer.text);
  assert.ok(Number(answer.headers.get('retry-after')) > 0, 'Retry-After');
}

function assertPlatformOutage(answer: Answer): void {
  assert.deepEqual([answer.status, answer.json.error_code_name], [503, 'SERVICE_UNAVAILABLE'], answer.text);
  assert.equal(typeof answer.json.trace_id, 'string');
}

function predict({ url }: Pick<AuthorizationEndpoint, 'url'>, headers: Record<string, string> = {}): Promise<Answer> {
  return request(`${url}/prediction.v1.PredictionService/Predict`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ targetModel: 'm', inputs: [{ inputId: 1, inputTokenLength: 100, serverIp: '10.0.0.1' }] }),
  });
}

async function waitUntilReady({ url }: AuthorizationEndpoint): Promise<void> {
  await waitUntil(async () => (await request(`${url}/readyz`)).status === 200);
}

for (const { title, begin, end } of OUTAGES)
  test(`V09 while PostgreSQL ${title}, each endpoint reports it, and all recover by themselves`, options, () =>
    withProgram(async ({ program, cluster, at }) => {
      const { cookie, user } = await createPerson(at);
      const { clientId, clientSecret } = await registerApplication(at);
      const tokens = await obtainTokens(at, { cookie, user }, { clientId, clientSecret });
      const token = tokens.access_token;
      const form = { token, client_id: clientId, client_secret: clientSecret };
      const headers = { authorization: `Bearer ${token}` };

      await begin(cluster);
      // At the same time, since they wait for the same answer of the database.
      const [oauth, platform, page, ready] = await Promise.all([
        Promise.all([
          refresh(at, tokens.refresh_token),
          postForm(`${at.url}/oauth/introspect`, form),
          postForm(`${at.url}/oauth/revoke`, form),
        ]),
        Promise.all([
          request(`${at.url}/api/v5/user`, { headers }),
          request(`${at.url}/api/v5/repos/grace/doors/hooks`, { headers }),
        ]),
        request(`${at.url}/oauth/authorize?client_id=${clientId}`, { headers: { cookie } }),
        request(`${at.url}/readyz`),
      ]);
      for (const answer of oauth) assertOAuthOutage(answer);
      for (const answer of platform) assertPlatformOutage(answer);
      assert.equal(page.status, 503);
      assert.match(page.text, /<h1>/);
      assert.equal(ready.status, 503);
      // A long outage reaches the timeouts of connections; a short one does not.
      await realWorld.sleep(AWAY_MS);
      assert.equal((await predict(at)).status, 200);
      // A caller behind a proxy needs a token, which only the database knows.
      const refused = await predict(at, { ...headers, via: '1.1 proxy' });
      assert.deepEqual([refused.status, refused.json.code], [503, 'unavailable'], refused.text);
      assert.equal((await request(`${at.url}/healthz`)).status, 200);
      const metrics = await request(`${at.url}/metrics`);
      assert.equal(metrics.status, 200, metrics.text);
      for (const line of [/^trivet_deliveries_pending 0$/m, /^trivet_unready_total [1-9]/m])
        assert.match(metrics.text, line);
      await end(cluster);

      await waitUntilReady(at);
      assert.equal(await callApi(at, token), 200, 'the revocation that was refused did not take place');
      assert.equal((await refresh(at, tokens.refresh_token)).status, 200);
      assert.equal(await program.stop(), 0);
    }),
  );

test('SIGTERM while PostgreSQL is frozen ends the program all the same', options, () =>
  withProgram(async ({ program, cluster, at }) => {
    cluster.freeze();
    const waiting = request(`${at.url}/readyz`).catch(() => {});
    assert.equal(await program.stop(), 0);
    await waiting;
    cluster.thaw();
  }),
);

test(
  'while PostgreSQL is read-only, events are refused with 503, reads and predictions go on, and it recovers',
  options,
  async () => {
    await using undo = new AsyncDisposableStack();
    const cluster = await startPostgresCluster();
    undo.defer(() => cluster.stop());
    const place = { dataDir: createDataDir(), databaseUrl: await createTestDatabase(cluster.socketDir, 'read_only') };
    const receiver = undo.use(await startReceiver());
    const environment = { LOG_LEVEL: 'warn' };
    const service = undo.use(await startPublishingService({ place, processes: 1, urls: [receiver.url], environment }));
    const [program] = service.programs;
    const admin = new pg.Client(place.databaseUrl);
    await admin.connect();
    undo.defer(() => admin.end());
    const setReadOnly = async (value: 'on' | 'off'): Promise<void> => {
      await admin.query(`ALTER SYSTEM SET default_transaction_read_only = ${value}`);
      await admin.query('SELECT pg_reload_conf()');
    };
    let sent = 0;
    const publish = (): Promise<Answer> => {
      sent += 1;
      return request(service.eventsUrl(0), {
        method: 'POST',
        headers: { authorization: `Bearer ${service.token}`, 'content-type': 'application/json' },
        body: JSON.stringify(numberedPush(sent)),
      });
    };
    assert.equal((await publish()).status, 202);

    await setReadOnly('on');
    // Connections read the configuration again some time after that.
    const refused = await waitUntil(async () => {
      const answer = await publish();
      return answer.status !== 202 && answer;
    });
    assertPlatformOutage(refused);
    assert.match(refused.text, /it accepts no writes/);
    assert.ok(Number(refused.headers.get('retry-after')) > 0, 'Retry-After');
    const url = program!.httpUrl;
    assert.equal((await service.call('GET', '/api/v5/repos/grace/doors/hooks')).status, 200);
    assert.equal((await predict({ url })).status, 200);
    assert.equal((await request(`${url}/readyz`)).status, 200, 'it serves what it can');
    assert.match(program!.log(), /PostgreSQL accepts no writes/);

    await setReadOnly('off');
    await waitUntil(async () => (await publish()).status === 202);
    await receiver.waitFor(2);
    assert.match(program!.log(), /PostgreSQL accepts writes again/);
    assert.equal(await program!.stop(), 0);
  },
);
