import assert from 'node:assert/strict';
import { forEachEngine } from '../../../test/support/engines.ts';
import { createStillWorld } from '../../../test/support/still-world.ts';
import { statement } from '../../database/store.ts';
import { createSweeping } from '../../database/sweep.ts';
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
  const sweeping = createSweeping(createStillWorld(), onFailure, new AbortController().signal);
  const { tickets, accessTokens } = await sweepEnded(store, { nowMs: 500, auditDays: 365 }, sweeping);
  assert.deepEqual({ tickets, accessTokens }, { tickets: 0, accessTokens: 1 });
  const text = await metrics.getSingleMetricAsString('trivet_sweep_failures_total');
  assert.deepEqual(text.match(/kind="(\w+)"\} 1$/m)?.[1], 'tickets');
  assert.equal(text.match(/\} 0$/gm)?.length, RETENTION_KINDS.length - 1);
});
