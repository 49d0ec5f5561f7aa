import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLookahead, createOracle, createSelfishOracle } from './oracle.ts';
import { createLoadAndPrefix } from './policies.ts';
import { createRandom } from './random-draws.ts';
import { createServer, type SimulatedServer } from './server.ts';
import { type RoutingPolicy, simulate } from './simulate.ts';
import { createRooflineTimer, GPUS } from './step-time.ts';
import { createWorkload, type SimulatedRequest } from './workload.ts';

const BLOCK_TOKENS = 64;

function createPool(): SimulatedServer[] {
  return GPUS.map((gpu) =>
    createServer({
      name: gpu.name,
      timer: createRooflineTimer(gpu),
      kvCapacityTokens: 20_000,
      maxBatchTokens: 2048,
      maxSequences: 64,
      blockTokens: BLOCK_TOKENS,
    }),
  );
}

const REQUESTS = createWorkload(
  {
    kind: 'bursts',
    requestsPerSecond: 20,
    durationMs: 30_000,
    medianInputTokens: 800,
    medianOutputTokens: 60,
    prefixGroups: 8,
    sharedShare: 0.5,
    blockTokens: BLOCK_TOKENS,
  },
  createRandom(5),
);

function run(servers: readonly SimulatedServer[], requests: readonly SimulatedRequest[], policy: RoutingPolicy) {
  return simulate({ servers, requests, policy, scrapeIntervalMs: 200, scrapeDelayMs: 50 });
}

function endsById(observations: ReturnType<typeof run>): Map<number, number> {
  return new Map(observations.map(({ outcome }) => [outcome.request.id, outcome.finishedMs]));
}

test('looking ahead changes nothing', () => {
  const servers = createPool();
  const lookahead = createLookahead(servers);
  const heuristic = createLoadAndPrefix();
  const looking: RoutingPolicy = {
    name: 'looking',
    choose(request, candidates, nowMs) {
      lookahead.tryAll(request, nowMs);
      const chosen = heuristic.choose(request, candidates, nowMs);
      lookahead.commit(chosen);
      return chosen;
    },
  };
  assert.deepEqual(
    endsById(run(servers, REQUESTS, looking)),
    endsById(run(createPool(), REQUESTS, createLoadAndPrefix())),
  );
});

test('the predicted cost of the last request, for itself and others, is what happens', () => {
  const servers = createPool();
  const lookahead = createLookahead(servers);
  const LAST = 150;
  const requests = REQUESTS.slice(0, LAST + 1);
  let expected = { ownMs: 0, othersMs: 0 };
  const policy: RoutingPolicy = {
    name: 'first server',
    choose(request, _candidates, nowMs) {
      [expected] = lookahead.tryAll(request, nowMs) as [typeof expected];
      lookahead.commit(0);
      return 0;
    },
  };
  const withIt = endsById(run(servers, requests, policy));
  const without = endsById(run(createPool(), requests.slice(0, LAST), { name: 'first', choose: () => 0 }));
  let othersMs = 0;
  for (const [id, endMs] of without) othersMs += withIt.get(id)! - endMs;
  assert.equal(expected.ownMs, withIt.get(LAST)! - requests[LAST]!.arrivalMs);
  assert.ok(othersMs > 0);
  assert.ok(Math.abs(expected.othersMs - othersMs) < 1e-6);
});

function meanEndToEnd(observations: ReturnType<typeof run>): number {
  return (
    observations.reduce((sum, { outcome }) => sum + outcome.finishedMs - outcome.dispatchedMs, 0) / observations.length
  );
}

test('among unlike servers the oracle keeps requests shorter than the heuristic', () => {
  const servers = createPool();
  const oracle = meanEndToEnd(run(servers, REQUESTS, createOracle(servers)));
  assert.ok(oracle < meanEndToEnd(run(createPool(), REQUESTS, createLoadAndPrefix())));
});

test('when each request goes where it ends first itself, all together end later', () => {
  const servers = createPool();
  const oracle = meanEndToEnd(run(servers, REQUESTS, createOracle(servers)));
  const others = createPool();
  assert.ok(meanEndToEnd(run(others, REQUESTS, createSelfishOracle(others))) > oracle);
});
