/** A stop by a signal that reaches the launcher and the service, as Ctrl-C and systemd send it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import pg from 'pg';
import { troubledHooks } from '../../src/database/migrations/0090-troubled-hooks.ts';
import { waitUntil } from '../support/basics/wait-until.ts';
import { type LaunchedTrivet, launchTrivet } from '../support/programs/launched-trivet.ts';
import { createDataDir } from '../support/programs/start-program.ts';
import { createMigratedPlace, findReasonToSkip, openTestStore } from '../support/store/engines.ts';

async function withService(run: (service: LaunchedTrivet, url: URL) => Promise<void>): Promise<void> {
  const dataDir = createDataDir();
  try {
    const env = { HTTP_PORT: '0', GRPC_PORT: '0', TRIVET_DATA_DIR: dataDir };
    await using service = launchTrivet(['serve'], { env });
    await run(service, new URL(await service.waitForOutput(/HTTP +(\S+)\n/)));
  } finally {
    rmSync(dataDir, { recursive: true });
  }
}

const FORM = 'grant_type=none';

/** A request whose last byte is missing: a stop waits for it. */
async function beginRequest(url: URL): Promise<Socket> {
  const socket = connect(Number(url.port), url.hostname);
  await once(socket, 'connect');
  const lines = [
    'POST /oauth/token HTTP/1.1',
    `Host: ${url.host}`,
    'Content-Type: application/x-www-form-urlencoded',
    `Content-Length: ${FORM.length}`,
    'Expect: 100-continue',
  ];
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  // It is under way once the service asks for the body.
  assert.match(String(await once(socket, 'data')), /^HTTP\/1.1 100 /);
  socket.write(FORM.slice(0, -1));
  return socket;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  test(`trivet serve answers what it has begun when ${signal} reaches the whole process group`, () =>
    withService(async (service, url) => {
      const socket = await beginRequest(url);
      service.signalGroup(signal);
      await service.waitForLog(/"stopping"/);
      service.signalGroup(signal);
      socket.end(FORM.slice(-1));
      assert.match(String(await once(socket, 'data')), /^HTTP\/1.1 4/);
      assert.equal(await service.exited, 0, service.log());
      assert.match(service.log(), /"stopped"/);
    }));

test('trivet serve ends at once when a signal comes again after a second', () =>
  withService(async (service, url) => {
    const socket = await beginRequest(url);
    socket.on('error', () => {});
    let code: number | null | undefined;
    void service.exited.then((given) => {
      code = given;
    });
    // Seldom: a signal that comes while the launcher ends would be the cause of its end.
    await waitUntil(() => {
      if (code === undefined) service.signalGroup('SIGTERM');
      return code !== undefined;
    }, 1500);
    assert.equal(code, 1);
    assert.doesNotMatch(service.log(), /"stopped"/);
  }));

interface Obstacle {
  readonly title: string;
  readonly begin: string;
  /** Finds rows once the start waits. */
  readonly find: string;
  /** Finds no rows soon after the end. */
  readonly findLeft?: string;
}

const OBSTACLES: readonly Obstacle[] = [
  {
    title: 'a table that another transaction uses',
    begin: 'BEGIN; LOCK TABLE hooks',
    find: "SELECT 1 FROM pg_locks WHERE relation = 'hooks'::regclass AND NOT granted",
  },
  {
    title: 'a table for which it waits for long',
    begin: `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = ''60s''', current_database()); END $$;
            COMMIT; BEGIN; LOCK TABLE hooks`,
    find: "SELECT 1 FROM pg_locks WHERE relation = 'hooks'::regclass AND NOT granted",
    findLeft:
      "SELECT 1 FROM pg_stat_activity WHERE application_name = 'trivet' AND datname = current_database() AND state = 'active'",
  },
  {
    title: 'the table of its first link',
    begin: 'BEGIN; LOCK TABLE tickets',
    find: "SELECT 1 FROM pg_locks WHERE relation = 'tickets'::regclass AND NOT granted",
  },
  {
    title: 'a process that migrates',
    begin: `UPDATE leases SET owner = 'another', expires_at_ms = extract(epoch FROM clock_timestamp()) * 1000 + 60000
            WHERE name = 'migrations'`,
    find: "SELECT 1 FROM pg_stat_activity WHERE application_name = 'trivet' AND query LIKE '%INTO leases%'",
  },
];

for (const { title, begin, find, findLeft } of OBSTACLES)
  test(`trivet serve ends with code 0 when SIGTERM comes while its start waits for ${title}`, {
    skip: findReasonToSkip('postgres'),
  }, async () => {
    await using parts = new AsyncDisposableStack();
    const { dataDir, databaseUrl = '' } = parts.use(await createMigratedPlace('postgres'));
    await (await openTestStore({ dataDir, databaseUrl }))[Symbol.asyncDispose]();
    const client = new pg.Client(databaseUrl);
    await client.connect();
    parts.defer(() => client.end());
    await client.query(`DELETE FROM schema_expansions WHERE id = ${troubledHooks.id}; DROP INDEX hooks_disabled;
      DROP INDEX endpoint_queue_failing; DROP INDEX endpoint_queue_canceled`);
    await client.query(begin);
    const env = { HTTP_PORT: '0', GRPC_PORT: '0', TRIVET_DATA_DIR: dataDir, DATABASE_URL: databaseUrl };
    await using service = launchTrivet(['serve'], { env });
    await waitUntil(async () => (await client.query(find)).rows.length > 0);
    assert.doesNotMatch(service.log(), /"started"/, 'nothing is served yet');
    service.signalGroup('SIGTERM');
    assert.equal(await service.exited, 0, service.log());
    assert.equal(service.output(), '');
    if (findLeft !== undefined) await waitUntil(async () => (await client.query(findLeft)).rows.length === 0);
    await client.query("ROLLBACK; UPDATE leases SET expires_at_ms = 0 WHERE owner = 'another'");
    await using next = launchTrivet(['serve'], { env });
    assert.ok(await next.waitForOutput(/Trivet is ready/), 'the lease of migrations is free');
  });

test('trivet demo ends with code 0 and removes its folder when Ctrl-C comes while it shows a command', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-test-'));
  await using demo = launchTrivet(['demo'], { env: { TMPDIR: folder } });
  await demo.waitForOutput(/\$ trivet simulate/);
  const listOwn = () => readdirSync(folder).filter((name) => name.startsWith('trivet-'));
  assert.equal(listOwn().length, 1);
  demo.signalGroup('SIGINT');
  assert.equal(await demo.exited, 0, demo.log());
  assert.deepEqual(listOwn(), []);
  rmSync(folder, { recursive: true });
});
