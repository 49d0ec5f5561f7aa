import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLeastRequests, createLoadAndPrefix, createRoundRobin } from './policies.ts';
import { createPrefixCache } from './prefix-cache.ts';
import { createRandom } from './random-draws.ts';
import { createServer, type SimulatedServer } from './server.ts';
import { type RoutingPolicy, simulate, simulateRemotely } from './simulate.ts';
import { createRooflineTimer, GPUS, type StepLoad } from './step-time.ts';
import { createWorkload, fromTrace, type SimulatedRequest, type WorkloadOptions } from './workload.ts';

const [LARGE, , SMALL] = GPUS;
const BLOCK_TOKENS = 64;

function createTestServer(
  name: string,
  kvCapacityTokens: number,
  onStep: (load: StepLoad) => void = () => {},
): SimulatedServer {
  const timer = createRooflineTimer(LARGE!);
  return createServer({
    name,
    kvCapacityTokens,
    maxBatchTokens: 2048,
    maxSequences: 64,
    blockTokens: BLOCK_TOKENS,
    timer: (load) => {
      onStep(load);
      return timer(load);
    },
  });
}

function createRequest(
  id: number,
  arrivalMs: number,
  inputTokens: number,
  outputTokens: number,
  blocks: readonly number[] = [],
): SimulatedRequest {
  return { id, arrivalMs, inputTokens, outputTokens, blocks };
}

function run(servers: readonly SimulatedServer[], requests: readonly SimulatedRequest[], policy = createRoundRobin()) {
  return simulate({ servers, requests, policy, scrapeIntervalMs: 100, scrapeDelayMs: 20 });
}

const WORKLOAD: WorkloadOptions = {
  kind: 'bursts',
  requestsPerSecond: 12,
  durationMs: 60_000,
  medianInputTokens: 800,
  medianOutputTokens: 60,
  prefixGroups: 8,
  sharedShare: 0.5,
  blockTokens: BLOCK_TOKENS,
};

test('every request finishes once, its first token before its last, and not before its work could be done', () => {
  const requests = createWorkload(WORKLOAD, createRandom(1));
  const observations = run([createTestServer('a', 100_000), createTestServer('b', 100_000)], requests);
  assert.equal(observations.length, requests.length);
  assert.equal(new Set(observations.map(({ outcome }) => outcome.request.id)).size, requests.length);
  for (const { outcome, ttftMs, tpotMs } of observations) {
    assert.ok(ttftMs >= LARGE!.weightsMs);
    assert.ok(tpotMs === undefined || tpotMs >= LARGE!.weightsMs);
    assert.ok(outcome.firstTokenMs <= outcome.finishedMs);
  }
});

test('the same seed gives the same simulation', () => {
  const once = () =>
    run([createTestServer('a', 50_000)], createWorkload(WORKLOAD, createRandom(7))).map(({ ttftMs, tpotMs }) => [
      ttftMs,
      tpotMs,
    ]);
  assert.deepEqual(once(), once());
});

test('a lone request takes the time its tokens need: chunks of the prompt, then one step a token', () => {
  const loads: StepLoad[] = [];
  const [observation] = run(
    [createTestServer('a', 100_000, (load) => loads.push(load))],
    [createRequest(0, 0, 5000, 4)],
  );
  assert.deepEqual(
    loads.map((load) => load.prefillTokens),
    [2048, 2048, 904, 0, 0, 0],
  );
  assert.deepEqual(
    loads.slice(3).map((load) => load.decodeContextTokens),
    [5001, 5002, 5003],
  );
  const timer = createRooflineTimer(LARGE!);
  assert.equal(
    observation?.ttftMs,
    loads.slice(0, 3).reduce((sum, load) => sum + timer(load).ms, 0),
  );
});

test('a prompt that begins like an earlier one computes only its end', () => {
  const loads: StepLoad[] = [];
  const blocks = Array.from({ length: 15 }, (_, index) => index);
  run(
    [createTestServer('a', 100_000, (load) => loads.push(load))],
    [createRequest(0, 0, 1000, 1, blocks), createRequest(1, 60_000, 1000, 1, blocks)],
  );
  assert.deepEqual(
    loads.map((load) => load.prefillTokens),
    [1000, 1000 - 15 * BLOCK_TOKENS],
  );
});

test('a full memory preempts the newest sequence, which is computed again and still finishes', () => {
  const requests = Array.from({ length: 6 }, (_, id) => createRequest(id, id, 300, 400));
  const observations = run([createTestServer('a', 2400)], requests);
  assert.equal(observations.length, 6);
  assert.ok(observations.some(({ outcome }) => outcome.preemptions > 0));
  assert.equal(observations.find(({ outcome }) => outcome.request.id === 0)?.outcome.preemptions, 0);
});

test('the memory never holds more than its capacity, and the cache gives way to what is in use', () => {
  const cache = createPrefixCache(10 * BLOCK_TOKENS, BLOCK_TOKENS);
  assert.ok(cache.acquire([1, 2, 3, 4, 5, 6], 0));
  assert.equal(cache.acquire([7, 8, 9, 10], 1), false);
  cache.release([1, 2, 3, 4, 5, 6], 0, 6 * BLOCK_TOKENS);
  assert.equal(cache.usedTokens(), 0);
  assert.equal(cache.countMatching([1, 2, 3, 99]), 3);
  assert.ok(cache.acquire([20, 21, 22, 23, 24, 25, 26], 0));
  // The end of the prompt went first: what more prompts begin with is still there.
  assert.equal(cache.countMatching([1, 2, 3, 4, 5, 6]), 3);
  assert.equal(cache.countMatching([4, 5, 6]), 0);
});

test('the gateway sees metrics only after the scrape and its delay', () => {
  const seen: number[] = [];
  const requests = [0, 10, 50, 130].map((atMs, id) => createRequest(id, atMs, 200, 500));
  const policy = {
    name: 'spy',
    choose: (_request: SimulatedRequest, candidates: readonly { numRequestRunning: number }[]) => {
      seen.push(candidates[0]!.numRequestRunning);
      return 0;
    },
  };
  run([createTestServer('a', 100_000)], requests, policy);
  assert.deepEqual(seen, [0, 0, 1, 3]);
});

test('on unlike servers under load, a policy that sees load is faster than round robin', () => {
  const createPool = () => [
    createTestServer('fast', 200_000),
    createServer({
      name: 'slow',
      timer: createRooflineTimer(SMALL!),
      kvCapacityTokens: 48_000,
      maxBatchTokens: 2048,
      maxSequences: 64,
      blockTokens: BLOCK_TOKENS,
    }),
  ];
  const requests = createWorkload({ ...WORKLOAD, requestsPerSecond: 14 }, createRandom(3));
  const meanTtft = (policy: ReturnType<typeof createRoundRobin>) => {
    const observations = run(createPool(), requests, policy);
    return observations.reduce((sum, { ttftMs }) => sum + ttftMs, 0) / observations.length;
  };
  const roundRobin = meanTtft(createRoundRobin());
  assert.ok(meanTtft(createLeastRequests()) < roundRobin);
  assert.ok(meanTtft(createLoadAndPrefix()) < roundRobin);
});

test('fromTrace() keeps order and lengths, scales time, and shares blocks by hash id', () => {
  const lines = [
    { timestamp: 1000, input_length: 1100, output_length: 5, hash_ids: [0, 1, 2] },
    { timestamp: 1500, input_length: 600, output_length: 0, hash_ids: [0, 7] },
  ];
  assert.deepEqual(fromTrace(lines, 0.5, 512), [
    { id: 0, arrivalMs: 0, inputTokens: 1100, outputTokens: 5, blocks: [0, 1] },
    { id: 1, arrivalMs: 250, inputTokens: 600, outputTokens: 1, blocks: [0] },
  ]);
});

test('every token of a prompt is computed once, and every further token of an answer is one sequence in one step', () => {
  const loads: StepLoad[] = [];
  const requests = createWorkload(WORKLOAD, createRandom(2)).map((request) => ({ ...request, blocks: [] }));
  const observations = run([createTestServer('a', 500_000, (load) => loads.push(load))], requests);
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  assert.equal(sum(observations.map(({ outcome }) => outcome.preemptions)), 0);
  assert.equal(sum(loads.map((load) => load.prefillTokens)), sum(requests.map(({ inputTokens }) => inputTokens)));
  assert.equal(
    sum(loads.map((load) => load.decodeSequences)),
    sum(requests.map(({ outputTokens }) => outputTokens - 1)),
  );
});

test('no step takes more than the budget, and memory in use stays within the capacity even when too much is asked', () => {
  const usages: number[] = [];
  const tokens: number[] = [];
  const server: SimulatedServer = createTestServer('a', 12_000, (load) => {
    usages.push(server.metrics(0).kvCacheUsage);
    tokens.push(load.prefillTokens + load.decodeSequences);
  });
  const requests = createWorkload({ ...WORKLOAD, requestsPerSecond: 30, durationMs: 20_000 }, createRandom(4)).filter(
    ({ inputTokens, outputTokens }) => inputTokens + outputTokens < 10_000,
  );
  const observations = run([server], requests);
  assert.ok(observations.some(({ outcome }) => outcome.preemptions > 0));
  assert.ok(usages.every((usage) => usage >= 0 && usage <= 1));
  assert.ok(tokens.every((count) => count > 0 && count <= 2048));
  assert.equal(server.metrics(0).kvCacheUsage, 0);
});

test('a server with work never rests: all is done when the sum of the steps is over', () => {
  let busyMs = 0;
  const timer = createRooflineTimer(LARGE!);
  const server = createTestServer('a', 100_000, (load) => {
    busyMs += timer(load).ms;
  });
  const requests = Array.from({ length: 40 }, (_, id) => createRequest(id, 0, 100 + 37 * id, 20 + id));
  const observations = run([server], requests);
  assert.ok(Math.abs(Math.max(...observations.map(({ outcome }) => outcome.finishedMs)) - busyMs) < 1e-6);
});

test('what a preempted prompt had not computed is not found in the cache', () => {
  const cache = createPrefixCache(10 * BLOCK_TOKENS, BLOCK_TOKENS);
  assert.ok(cache.acquire([1, 2, 3], 5));
  cache.release([1, 2, 3], 5, 2 * BLOCK_TOKENS + 1);
  assert.equal(cache.countMatching([1, 2, 3]), 2);
});

test('the gateway counts at once what it sends, and what the last scrape cannot show', () => {
  const seen: number[][] = [];
  const requests = [0, 10, 50, 130, 9000].map((atMs, id) => createRequest(id, atMs, 200, 500));
  const policy: RoutingPolicy = {
    name: 'spy',
    choose: (_request, [candidate]) => {
      seen.push([candidate!.underWay, candidate!.sentSinceScrape]);
      return 0;
    },
  };
  run([createTestServer('a', 100_000)], requests, policy);
  // Scrapes are taken at 0, 100, …, and known 20 ms later; the first one comes after the first request.
  assert.deepEqual(seen, [
    [0, 0],
    [1, 1],
    [2, 1],
    [3, 0],
    [0, 0],
  ]);
});

test('a server that rests reports no utilization, and one at work that of the last second', () => {
  const seen: number[] = [];
  const policy: RoutingPolicy = {
    name: 'spy',
    choose: (_request, [candidate]) => {
      seen.push(candidate!.bandwidthUtilization);
      return 0;
    },
  };
  const requests = [createRequest(0, 0, 200, 300), createRequest(1, 1500, 200, 2), createRequest(2, 60_000, 200, 2)];
  run([createTestServer('a', 100_000)], requests, policy);
  const [first, working, rested] = seen;
  assert.equal(first, 0);
  assert.ok(working! > 0.1, `${working}`);
  assert.ok(rested! < 0.001, `${rested}`);
});

test('a policy that must be waited for routes as the same one that answers at once', async () => {
  const requests = createWorkload({ ...WORKLOAD, durationMs: 10_000 }, createRandom(6));
  const createPool = () => [createTestServer('a', 50_000), createTestServer('b', 50_000)];
  const policy = createLeastRequests();
  const reported: number[] = [];
  const remotely = await simulateRemotely({
    servers: createPool(),
    requests,
    policy: {
      name: 'remote',
      choose: async (request, candidates, nowMs) => policy.choose(request, candidates, nowMs),
      onFinished: async (request) => void reported.push(request.id),
    },
    scrapeIntervalMs: 100,
    scrapeDelayMs: 20,
  });
  assert.deepEqual(remotely, run(createPool(), requests, createLeastRequests()));
  assert.equal(reported.length, requests.length);
});
