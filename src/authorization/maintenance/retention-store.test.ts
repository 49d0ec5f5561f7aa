import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import pg from 'pg';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { waitUntil } from '../../../test/support/basics/wait-until.ts';
import {
  createStorePlace,
  findReasonToSkip,
  forEachEngine,
  openTestStore,
} from '../../../test/support/store/engines.ts';
import { statement } from '../../database/store.ts';
import { createSweepContext, SWEEP_BATCH, SWEEP_WITHOUT_PAUSES } from '../../database/sweep.ts';
import { createLog } from '../../telemetry/log.ts';
import { createMetrics } from '../../telemetry/metrics.ts';
import { createSweepFailures } from '../../workers/sweep-failures.ts';
import { RETENTION_KINDS, sweepEnded } from './retention-store.ts';

const hideOneTimeTokensSql = statement('test-hide-tickets', 'ALTER TABLE tickets RENAME TO hidden_tickets');
const insertAccessSql = statement(
  'test-insert-expired-access',
  'INSERT INTO access_tokens (token_hash, family_id, scope, issued_at_ms, expires_at_ms) VALUES ($1, $2, $3, 0, 1)',
);

forEachEngine('sweepEnded() sweeps every kind but the one that fails, which is counted', async (store) => {
  await store.write(insertAccessSql, [Buffer.from('token'), 'family', 'all_user']);
  await store.write(hideOneTimeTokensSql);
  const metrics = createMetrics();
  const onFailure = createSweepFailures(
    { log: createLog('silent'), metrics },
    'authorization-sweeper',
    RETENTION_KINDS,
  );
  const sweeping = createSweepContext(createStillWorld(), onFailure, new AbortController().signal);
  const { tickets, accessTokens } = await sweepEnded(store, { nowMs: 500, auditDays: 365 }, sweeping);
  assert.deepEqual({ tickets, accessTokens }, { tickets: 0, accessTokens: 1 });
  const text = await metrics.getSingleMetricAsString('trivet_sweep_failures_total');
  assert.deepEqual(text.match(/kind="(\w+)"\} 1$/m)?.[1], 'tickets');
  assert.equal(text.match(/\} 0$/gm)?.length, RETENTION_KINDS.length - 1);
});

const insertCodeSql = statement(
  'test-insert-code',
  `INSERT INTO authorization_codes (code_hash, client_id, user_id, user_epoch, grant_id, redirect_uri, scope, auth_time_ms,
     issued_at_ms, expires_at_ms, failed_attempts, redeemed_at_ms, family_id)
   VALUES ($1, 'app_1', 'ada', 0, 'consent', 'https://app.example.org/', 'all_user', 0, 0, $2, 0, $3, $4)`,
);
const insertFamilySql = statement(
  'test-insert-family',
  `INSERT INTO token_families (family_id, client_id, user_id, user_epoch, grant_id, scope, auth_time_ms, created_at_ms,
     expires_at_ms) VALUES ('family', 'app_1', 'ada', 0, 'consent', 'all_user', 0, 0, $1)`,
);
const listCodesSql = statement<{ code_hash: Uint8Array }>(
  'test-list-codes',
  'SELECT code_hash FROM authorization_codes ORDER BY expires_at_ms',
);

forEachEngine('a code that was never used is deleted soon, one that was is known for a day', async (store) => {
  const expiresAtMs = 1_000_000_000;
  await store.write(insertFamilySql, [2 * expiresAtMs]);
  const insert = (name: string, redeemed: readonly [atMs: number | null, familyId: string | null], afterMs = 0) =>
    store.write(insertCodeSql, [Buffer.from(name), expiresAtMs + afterMs, ...redeemed]);
  await insert('redeemed', [1, 'family']);
  await insert('redeemed, its tokens are gone', [1, 'ended'], 1);
  for (let count = 0; count < 50; count += 1) await insert(`never used ${count}`, [null, null], 2);
  await insert('still valid', [null, null], 3_600_000);
  const sweepAt = async (nowMs: number) => {
    const swept = await sweepEnded(store, { nowMs, auditDays: 365 });
    const left = await store.read(listCodesSql);
    return {
      swept: swept.uselessCodes + swept.codes,
      left: left.map(({ code_hash }) => Buffer.from(code_hash).toString()),
    };
  };
  // The clocks of two processes may differ by a minute.
  assert.equal((await sweepAt(expiresAtMs + 59_000)).swept, 0);
  assert.deepEqual(await sweepAt(expiresAtMs + 61_000), { swept: 51, left: ['redeemed', 'still valid'] });
  assert.deepEqual((await sweepAt(expiresAtMs + 86_000_000)).left, ['redeemed', 'still valid']);
  assert.deepEqual(await sweepAt(expiresAtMs + 86_400_000), { swept: 1, left: ['still valid'] });
  assert.equal((await sweepAt(expiresAtMs + 3_600_000 + 86_400_000)).swept, 1);
});

test('a code is kept when the sweep has waited for its exchange', { skip: findReasonToSkip('postgres') }, async () => {
  const place = await createStorePlace('postgres');
  await using store = await openTestStore(place);
  await store.write(insertCodeSql, [Buffer.from('code'), 1_000_000_000, null, null]);
  const [exchange, watcher] = [new pg.Client(place.databaseUrl), new pg.Client(place.databaseUrl)];
  await Promise.all([exchange.connect(), watcher.connect()]);
  const { rows } = await exchange.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  await exchange.query('BEGIN');
  await exchange.query("UPDATE authorization_codes SET redeemed_at_ms = 1, family_id = 'family'");
  const sweeping = sweepEnded(store, { nowMs: 1_000_061_000, auditDays: 365 });
  const blocked = 'SELECT pid FROM pg_stat_activity WHERE $1::int = ANY(pg_blocking_pids(pid))';
  await waitUntil(async () => (await watcher.query(blocked, [rows[0]!.pid])).rows[0]);
  await exchange.query('COMMIT');
  assert.equal((await sweeping).uselessCodes, 0);
  assert.equal((await store.read(listCodesSql)).length, 1);
  await Promise.all([exchange.end(), watcher.end()]);
  rmSync(place.dataDir, { recursive: true, force: true });
});

const countAccessSql = statement<{ count: number }>('test-count-access', 'SELECT COUNT(*) AS count FROM access_tokens');
const insertEndingAccessSql = statement(
  'test-insert-access',
  'INSERT INTO access_tokens (token_hash, family_id, scope, issued_at_ms, expires_at_ms) VALUES ($1, $2, $3, 0, $4)',
);

forEachEngine('S13 expired rows go in bounded batches, and what lives stays', async (store) => {
  const statements = Array.from({ length: SWEEP_BATCH + 10 }, (_, i) => ({
    statement: insertEndingAccessSql,
    parameters: [Buffer.from(`token ${i}`), 'family', 'all_user', i < SWEEP_BATCH + 5 ? 1 : 1000],
  }));
  await store.writeAll(statements);
  const count = async () => (await store.read(countAccessSql))[0]?.count;
  const left: (number | undefined)[] = [];
  const pause = async () => void left.push(await count());
  const { accessTokens } = await sweepEnded(store, { nowMs: 500, auditDays: 365 }, { ...SWEEP_WITHOUT_PAUSES, pause });
  assert.equal(accessTokens, SWEEP_BATCH + 5);
  assert.deepEqual([...left, await count()], [478, 414, 286, 30, 5]);
});
