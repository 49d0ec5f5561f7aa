/** Numbers that gateways give the router of `clients/typescript` and that messages cannot have: fractions, NaN, too large ones. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectGrpc } from '../../clients/typescript/grpc-client.ts';
import { connectHttp } from '../../clients/typescript/http-client.ts';
import { toInt32 } from '../../clients/typescript/int32.ts';
import { createLoad } from '../../clients/typescript/load.ts';
import { createRouter } from '../../clients/typescript/router.ts';
import { startProgram } from '../support/programs/start-program.ts';

const POOL = ['10.0.0.1', '10.0.0.2'];
const IMPOSSIBLE = [
  { waiting: Number.NaN, kvCacheUsage: 0 },
  { waiting: -1, kvCacheUsage: 0 },
  { waiting: 0, kvCacheUsage: Number.NaN },
  { waiting: 0, kvCacheUsage: Infinity },
];

test('choose() of the TypeScript router rejects because of no metrics when nothing answers', async () => {
  for (const metrics of IMPOSSIBLE) {
    const router = createRouter({ client: connectHttp('http://127.0.0.1:1'), model: 'qwen3-32b' });
    router.setMetrics('10.0.0.1', metrics);
    assert.equal((await router.choose(1000, POOL)).address, '10.0.0.1');
    assert.equal((await router.choose(1000, POOL)).address, '10.0.0.2');
  }
});

test('the TypeScript router takes metrics that cannot be true as not read', () => {
  for (const metrics of IMPOSSIBLE) {
    const clock = { nowMs: 1000 };
    const load = createLoad({ maxMetricsAgeMs: 5000, monotonicMs: () => clock.nowMs });
    load.setMetrics('10.0.0.1', { waiting: 2, kvCacheUsage: 0.5 });
    clock.nowMs += 5000;
    load.setMetrics('10.0.0.1', metrics);
    const [asked] = load.ask(10, POOL);
    assert.deepEqual([asked!.numRequestWaiting, asked!.kvCacheUsage], [2, 0.5]);
    clock.nowMs += 1;
    assert.equal(load.chooseLeastLoaded(POOL), 1, 'its last true metrics are too old');
  }
});

test('the TypeScript router chooses no candidate whose prediction is not a number', () => {
  const load = createLoad({ maxMetricsAgeMs: 5000, monotonicMs: () => 1000 });
  const outputs = [NaN, 10, 10, 10].map((time, inputId) => ({
    inputId,
    predictedTtftMillis: time,
    predictedTpotMillis: 1,
  }));
  assert.equal(load.choose(POOL, outputs), 1);
});

test('numbers that are not whole or too large cost the TypeScript router no prediction and no report', async () => {
  await using program = await startProgram({ PARTS: 'prediction' });
  for (const client of [connectHttp(program.httpUrl), connectGrpc(program.grpcAddress)]) {
    const router = createRouter({ client, model: 'qwen3-32b', deadlineMs: 30_000 });
    router.setMetrics('10.0.0.1', { waiting: 0.5, kvCacheUsage: 0 });
    router.setMetrics('10.0.0.2', { waiting: 1e12, kvCacheUsage: 0 });
    for (const promptTokens of [312.25, 1e12, 312.25]) {
      const choice = await router.choose(promptTokens, POOL);
      assert.deepEqual([choice.modelVersion, choice.error], ['prior@1', undefined]);
      choice.firstToken(120.5);
      choice.finished(2000, 180.5);
    }
    assert.deepEqual(await router.close(), { accepted: 9, refused: 0, dropped: 0 });
  }
});

test('toInt32() rounds to what an int32 can hold, and makes 0 of what is not a number', () => {
  const rounded = [312.25, 0.5, -0.4, 1e12, -Infinity, Number.NaN].map(toInt32);
  assert.deepEqual(rounded, [312, 1, 0, 2147483647, -2147483647, 0]);
});
