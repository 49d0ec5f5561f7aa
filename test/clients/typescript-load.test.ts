/** What the router of `clients/typescript` knows of its servers, and how long it believes it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLoad } from '../../clients/typescript/load.ts';
import { createServers } from '../../clients/typescript/servers.ts';

const POOL = ['10.0.0.1', '10.0.0.2'];
const HOUR_MS = 3_600_000;

function openLoad() {
  const clock = { nowMs: 1000 };
  return { clock, load: createLoad({ maxMetricsAgeMs: 5000, monotonicMs: () => clock.nowMs }) };
}

test('the TypeScript router measures a server again that got no request for long', () => {
  const { load } = openLoad();
  load.ask(10, POOL);
  for (let index = 0; index <= 100; index++) load.dispatch('10.0.0.1', 10)(5);
  const fast = { predictedTtftMillis: 100, predictedTpotMillis: 10 };
  const slow = { predictedTtftMillis: 900, predictedTpotMillis: 10 };
  const outputs = [fast, slow, fast, slow].map((output, inputId) => ({ ...output, inputId }));
  assert.equal(load.choose(POOL, outputs), 1);
  const withoutSlow = outputs.filter(({ inputId }) => inputId !== 1);
  assert.equal(load.choose(POOL, withoutSlow), 0, 'a server without an answer waits until it has one');
});

test('the TypeScript router takes metrics that are too old for none', () => {
  const { load, clock } = openLoad();
  load.setMetrics('10.0.0.1', { waiting: 40, kvCacheUsage: 0.9 });
  clock.nowMs += 5000;
  assert.equal(load.chooseLeastLoaded(POOL), 1);
  assert.deepEqual([load.ask(10, POOL)[0]!.numRequestWaiting, load.ask(10, POOL)[0]!.kvCacheUsage], [40, 0.9]);
  clock.nowMs += 1;
  const [asked] = load.ask(10, POOL);
  assert.deepEqual([asked!.numRequestWaiting, asked!.kvCacheUsage], [undefined, undefined]);
});

test('the TypeScript router chooses no server whose metrics are too old, unless those of all are', () => {
  const { load, clock } = openLoad();
  load.setMetrics('10.0.0.1', { waiting: 40, kvCacheUsage: 0 });
  clock.nowMs += 5001;
  load.setMetrics('10.0.0.2', { waiting: 5, kvCacheUsage: 0 });
  // Nothing was sent to the server with old metrics, so that it would be measured again.
  for (let index = 0; index <= 100; index++) load.dispatch('10.0.0.2', 10);
  const fast = { predictedTtftMillis: 100, predictedTpotMillis: 10 };
  const slow = { predictedTtftMillis: 900, predictedTpotMillis: 90 };
  const outputs = [fast, slow, fast, fast].map((output, inputId) => ({ ...output, inputId }));
  assert.deepEqual([load.choose(POOL, outputs), load.chooseLeastLoaded(POOL)], [1, 1]);
  clock.nowMs += 5001;
  assert.deepEqual([load.choose(POOL, outputs), load.chooseLeastLoaded(POOL)], [0, 0]);
});

test('the TypeScript router forgets a server that was not used for an hour and has nothing under way', () => {
  const clock = { nowMs: 1000 };
  const servers = createServers({ maxMetricsAgeMs: 5000, monotonicMs: () => clock.nowMs });
  const [unused, busy] = [servers.of('10.0.0.1', 0), servers.of('10.0.0.2', 0)];
  unused.underWay = busy.underWay = 1;
  clock.nowMs += HOUR_MS;
  servers.forgetUnused();
  assert.equal(servers.count, 2);
  unused.underWay = 0;
  servers.of('10.0.0.3', 0);
  clock.nowMs += HOUR_MS;
  servers.of('10.0.0.3', 0);
  servers.forgetUnused();
  assert.equal(servers.count, 2);
  assert.equal(servers.of('10.0.0.2', 0), busy);
});
