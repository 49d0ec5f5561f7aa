/** A clock that is wrong, or jumps, holds up nothing for long and deletes nothing that is not due. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listEvents } from '../../src/authorization/accounts/audit-store.ts';
import { createUser } from '../../src/authorization/accounts/user-store.ts';
import { type Store, statement } from '../../src/database/store.ts';
import { realWorld } from '../../src/world.ts';
import { waitUntil } from '../support/basics/wait-until.ts';
import { startReceiver } from '../support/network/receiver.ts';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { startProgram } from '../support/programs/start-program.ts';
import { createStorePlace, engines, findReasonToSkip, openTestStore } from '../support/store/engines.ts';
import { numberedPush, startPublishingService } from '../support/webhooks/publishing-service.ts';

const SECOND_MS = 1000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const SHIFT = new URL('../support/basics/shifted-clock.ts', import.meta.url).href;

for (const engine of engines)
  test(`a retry that was planned by a clock a day ahead follows soon after the clock is right (${engine})`, {
    skip: findReasonToSkip(engine),
    timeout: 120_000,
  }, async () => {
    await using receiver = await startReceiver((_, response, index) => {
      response.statusCode = index === 0 ? 500 : 200;
      response.end();
    });
    await using ahead = await startPublishingService({
      place: await createStorePlace(engine),
      processes: 1,
      urls: [receiver.url],
      environment: { NODE_OPTIONS: `--import ${SHIFT}`, TEST_CLOCK_AHEAD_MS: String(DAY_MS) },
    });
    const published = await ahead.call('POST', new URL(ahead.eventsUrl(0)).pathname, numberedPush(1));
    assert.equal(published.status, 202);
    await receiver.waitFor(1);
    // A stop stores the result of the attempt, and with it the time of the retry.
    await ahead.programs[0]?.stop();
    const { NODE_OPTIONS: _, ...environment } = ahead.environment;
    await using right = await startProgram(environment, environment.TRIVET_DATA_DIR);
    await receiver.waitFor(2);
    assert.equal(
      receiver.received[1]?.headers['x-gitcode-delivery'],
      receiver.received[0]?.headers['x-gitcode-delivery'],
    );
    await right.stop();
  });

test('two processes a day apart on one PostgreSQL send each delivery once and wait between retries', {
  skip: findReasonToSkip('postgres'),
  timeout: 240_000,
}, async () => {
  const count = 20;
  await using receiver = await startReceiver();
  await using broken = await startReceiver((_, response) => {
    response.statusCode = 500;
    response.end();
  });
  await using right = await startPublishingService({
    place: await createStorePlace('postgres'),
    processes: 1,
    urls: [receiver.url, broken.url],
  });
  await using _ahead = await startProgram({
    ...right.environment,
    NODE_OPTIONS: `--import ${SHIFT}`,
    TEST_CLOCK_AHEAD_MS: String(DAY_MS),
  });
  for (let at = 0; at < count; at += 1) {
    const published = await right.call('POST', new URL(right.eventsUrl(0)).pathname, numberedPush(at));
    assert.equal(published.status, 202);
  }
  await receiver.waitFor(count);
  // Five failures pause the hook; the sixth attempt is the probe after five seconds.
  await broken.waitFor(6);
  const attempts = Map.groupBy(broken.received, ({ headers }) => headers['x-gitcode-delivery']);
  assert.ok(Math.max(...[...attempts.values()].map((some) => some.length)) <= 2);
  assert.equal(receiver.received.length, count);
});

const sweepLeaseSql = statement<{ epoch: number; expires_at_ms: number }>(
  'test-sweep-lease',
  "SELECT epoch, expires_at_ms FROM leases WHERE name = 'delivery-sweeper'",
);
const kept = statement<{ events: number; deliveries: number; attempts: number; contents: number; audit: number }>(
  'test-kept-rows',
  `SELECT (SELECT count(*) FROM events) AS events, (SELECT count(*) FROM deliveries) AS deliveries,
     (SELECT count(*) FROM delivery_attempts) AS attempts, (SELECT count(*) FROM delivery_contents) AS contents,
     (SELECT count(*) FROM audit_events) AS audit`,
);

/** A round of the sweeper has begun and ended since the lease had this epoch. */
async function waitForSweep(store: Store, epoch: number): Promise<void> {
  await waitUntil(async () => {
    const [lease] = await store.read(sweepLeaseSql);
    return lease !== undefined && lease.epoch > epoch && lease.expires_at_ms === 0;
  });
}

test('a process that starts with a clock far ahead deletes nothing by age', { timeout: 120_000 }, async () => {
  await using receiver = await startReceiver();
  const place = await createStorePlace('sqlite');
  await using right = await startPublishingService({ place, processes: 1, urls: [receiver.url] });
  const path = new URL(right.eventsUrl(0)).pathname;
  assert.equal((await right.call('POST', path, numberedPush(1))).status, 202);
  await receiver.waitFor(1);
  await right.programs[0]!.stop();
  await using store = await openTestStore(place);
  const [lease] = await store.read(sweepLeaseSql);
  const [before] = await store.read(kept);
  assert.deepEqual([before?.events, before?.deliveries, before?.attempts], [1, 1, 1]);
  const aheadMs = 400 * DAY_MS;
  const clock = { NODE_OPTIONS: `--import ${SHIFT}`, TEST_CLOCK_AHEAD_MS: String(aheadMs) };
  await using ahead = await startProgram({ ...right.environment, ...clock }, right.environment.TRIVET_DATA_DIR);
  await waitForSweep(store, lease?.epoch ?? 0);
  const headers = { authorization: `Bearer ${right.token}`, 'content-type': 'application/json' };
  const body = JSON.stringify(numberedPush(2));
  assert.equal((await fetch(new URL(path, ahead.httpUrl), { method: 'POST', headers, body })).status, 202);
  await receiver.waitFor(2);
  await ahead.stop();
  const [after] = await store.read(kept);
  assert.deepEqual([after?.events, after?.deliveries, after?.contents], [2, 2, 2]);
});

for (const jumpMs of [HOUR_MS, -HOUR_MS])
  test(`a clock that jumps by ${jumpMs / HOUR_MS} hour delays no retry and no new delivery`, {
    timeout: 120_000,
  }, async () => {
    await using receiver = await startReceiver((_, response, index) => {
      response.statusCode = index === 0 ? 500 : 200;
      response.end();
    });
    await using running = await startPublishingService({
      place: await createStorePlace('sqlite'),
      processes: 1,
      urls: [receiver.url],
      environment: { NODE_OPTIONS: `--import ${SHIFT}`, TEST_CLOCK_JUMP_MS: String(jumpMs) },
    });
    const path = new URL(running.eventsUrl(0)).pathname;
    assert.equal((await running.call('POST', path, numberedPush(1))).status, 202);
    await receiver.waitFor(1);
    process.kill(running.programs[0]!.pid, 'SIGUSR2');
    assert.equal((await running.call('POST', path, numberedPush(2))).status, 202);
    await receiver.waitFor(3);
    const ids = receiver.received.map(({ headers }) => headers['x-gitcode-delivery']);
    assert.equal(ids.filter((id) => id === ids[0]).length, 2);
    assert.equal(new Set(ids).size, 2);
  });

test('a command on a machine whose clock is a day ahead takes the time of PostgreSQL', {
  skip: findReasonToSkip('postgres'),
  timeout: 120_000,
}, async () => {
  const { dataDir, databaseUrl = '' } = await createStorePlace('postgres');
  await using store = await openTestStore({ dataDir, databaseUrl });
  const profile = { login: 'ada', name: 'Ada', email: null, isAdmin: false, passwordHash: null };
  await createUser(store, realWorld, profile);
  const env = {
    DATABASE_URL: databaseUrl,
    SECRET_KEYS: Buffer.alloc(32, 7).toString('base64'),
    NODE_OPTIONS: `--import ${SHIFT}`,
    TEST_CLOCK_AHEAD_MS: String(DAY_MS),
  };
  const create = ['token', 'create', '--user', 'ada', '--name', 'hour', '--scope', 'predict', '--json'];
  const beforeMs = Date.now();
  const made = await runTrivet([...create, '--expires', '1h'], { env });
  assert.equal(made.code, 0, made.stderr);
  const { expiresAtMs } = JSON.parse(made.stdout) as { expiresAtMs: number };
  const afterMs = Date.now();
  const [event] = await listEvents(store, { limit: 1 });
  // The server is on this machine, so its clock is that of the test.
  for (const atMs of [expiresAtMs - HOUR_MS, event?.atMs ?? 0])
    assert.ok(atMs >= beforeMs - SECOND_MS && atMs <= afterMs + SECOND_MS, `${atMs - beforeMs} ms`);
});
