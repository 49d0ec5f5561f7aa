/** The short form of `npm run test:fleet`: a tenth of its load, one kill, and the interval that docs/how-to/use-postgresql.md advises. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { skipWithout } from '../support/basics/client-tools.ts';
import { HOOKS, runFailover, SHORT_SCALE } from './failover.ts';

const skip = skipWithout('patroni python3-etcd etcd-server', ['patroni', '--version'], ['etcd', '--version']);

test('loses nothing that was acknowledged when the primary of three PostgreSQL servers is killed', {
  skip,
  timeout: 600_000,
}, async (t) => {
  const print = (line: string) => t.diagnostic(line);
  const report = await runFailover({
    route: 'hosts',
    standbyRetry: '500ms',
    scale: SHORT_SCALE,
    blows: ['kill'],
    print,
  });

  assert.deepEqual(report.failures, []);
  assert.equal(report.failovers.length, 1);
  const { received, observed, exchanged, spentUnanswered } = report.counts;
  assert.deepEqual(
    { received, observed, codes: exchanged + spentUnanswered },
    { received: SHORT_SCALE.events * HOOKS, observed: SHORT_SCALE.observations, codes: SHORT_SCALE.codes },
  );
});
