/**
 * What routing by predictions is worth, on the simulator: `node bench/routing.ts [--json] [--duration 300] [--seed 1]`.
 * Like and unlike servers, low and high load, bursts with shared prefixes. Both models learn from the same recording of
 * the same pool, routed by load and prefix, of another seed; "trees, p90" then stays as it is, as with predictors that
 * are trained apart, and "trivet" hears of first tokens and ends. Simulated time: the machine does not matter.
 */
import { parseArgs } from 'node:util';
import { formatTable } from '../src/cli/output.ts';
import { appendObservation, createObservationTable } from '../src/prediction/observation-table.ts';
import { createLeastRequests, createLoadAndPrefix, createRoundRobin } from '../src/prediction/simulator/policies.ts';
import { createRandom } from '../src/prediction/simulator/random.ts';
import { createServer } from '../src/prediction/simulator/server.ts';
import { type RoutingPolicy, type SimulatedObservation, simulate } from '../src/prediction/simulator/simulate.ts';
import { createRooflineTimer, GPUS } from '../src/prediction/simulator/step-time.ts';
import { createWorkload } from '../src/prediction/simulator/workload.ts';
import { DEFAULT_TRAINING, trainModel } from '../src/prediction/train-model.ts';
import { createPredictedPolicy } from './routing/predicted-policy.ts';

const { values: flags } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    duration: { type: 'string', default: '300' },
    seed: { type: 'string', default: '1' },
  },
});
const SEED = Number(flags.seed);
/** The recording that models learn from has a seed that no measured run has. */
const TRAINING_SEED = SEED + 1000;
const DURATION_MS = 1000 * Number(flags.duration);
const BLOCK_TOKENS = 512;
const MEDIAN_OUTPUT_TOKENS = 120;
/** A request is good when it keeps both. */
const SLO = { ttftMs: 1000, tpotMs: 50 };

interface Scenario {
  readonly pool: string;
  readonly gpus: readonly string[];
  readonly load: 'low' | 'high';
  readonly requestsPerSecond: number;
}

const LIKE = ['medium', 'medium', 'medium', 'medium'];
const UNLIKE = ['large', 'medium', 'medium', 'small'];
const SCENARIOS: readonly Scenario[] = [
  { pool: 'like', gpus: LIKE, load: 'low', requestsPerSecond: 12 },
  { pool: 'like', gpus: LIKE, load: 'high', requestsPerSecond: 30 },
  { pool: 'unlike', gpus: UNLIKE, load: 'low', requestsPerSecond: 12 },
  { pool: 'unlike', gpus: UNLIKE, load: 'high', requestsPerSecond: 30 },
];

function runScenario({ gpus, requestsPerSecond }: Scenario, policy: RoutingPolicy, seed: number) {
  const servers = gpus.map((name, i) => {
    const gpu = GPUS.find((candidate) => candidate.name === name)!;
    return createServer({
      name: `${name}-${i}`,
      timer: createRooflineTimer(gpu),
      kvCapacityTokens: gpu.kvCapacityTokens,
      maxBatchTokens: 2048,
      maxSequences: 256,
      blockTokens: BLOCK_TOKENS,
    });
  });
  const workload = {
    kind: 'bursts',
    requestsPerSecond,
    durationMs: DURATION_MS,
    medianInputTokens: 900,
    medianOutputTokens: MEDIAN_OUTPUT_TOKENS,
    prefixGroups: 24,
    sharedShare: 0.5,
    blockTokens: BLOCK_TOKENS,
  } as const;
  const requests = createWorkload(workload, createRandom(seed));
  return simulate({ servers, requests, policy, scrapeIntervalMs: 200, scrapeDelayMs: 50 });
}

function createPolicies(scenario: Scenario): RoutingPolicy[] {
  const table = createObservationTable();
  const recorded = runScenario(scenario, createLoadAndPrefix(), TRAINING_SEED);
  for (const { candidate, ttftMs, tpotMs, outcome } of recorded.sort(byStart)) {
    const { server, ...metrics } = candidate;
    const input = { ...metrics, podType: '', hbmUtilization: 0, serverIp: server };
    appendObservation(table, { targetModel: 'm', input, atMs: outcome.dispatchedMs, ttftMs, tpotMs });
  }
  const expectedOutputTokens = MEDIAN_OUTPUT_TOKENS;
  const careful = trainModel('m@1', table, { ...DEFAULT_TRAINING, statistic: 'p90' });
  const model = trainModel('m@2', table);
  return [
    createRoundRobin(),
    createLeastRequests(),
    createLoadAndPrefix(),
    createPredictedPolicy({ name: 'trees, p90', model: careful, learnsOnline: false, expectedOutputTokens }),
    createPredictedPolicy({ name: 'trivet', model, learnsOnline: true, expectedOutputTokens }),
  ];
}

function byStart(a: SimulatedObservation, b: SimulatedObservation): number {
  return a.outcome.dispatchedMs - b.outcome.dispatchedMs;
}

function measure(scenario: Scenario, policy: RoutingPolicy) {
  const observations = runScenario(scenario, policy, SEED);
  const good = observations.filter(
    ({ ttftMs, tpotMs }) => ttftMs <= SLO.ttftMs && (tpotMs === undefined || tpotMs <= SLO.tpotMs),
  );
  return {
    pool: scenario.pool,
    load: scenario.load,
    policy: policy.name,
    ttft: quantiles(observations.map(({ ttftMs }) => ttftMs)),
    tpot: quantiles(observations.flatMap(({ tpotMs }) => tpotMs ?? [])),
    end_to_end: quantiles(observations.map(({ outcome }) => outcome.finishedMs - outcome.dispatchedMs)),
    goodput_per_second: round((1000 * good.length) / DURATION_MS),
    good_percent: round((100 * good.length) / observations.length),
  };
}

function quantiles(times: readonly number[]): { p50: number; p95: number; p99: number } {
  const sorted = Float64Array.from(times).sort();
  const at = (share: number) => round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0);
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

const results = SCENARIOS.flatMap((scenario) => createPolicies(scenario).map((policy) => measure(scenario, policy)));
const names = ['p50', 'p95', 'p99'] as const;
const targets = ['ttft', 'tpot', 'end_to_end'] as const;
const titles = targets.flatMap((target) => names.map((name) => `${target === 'end_to_end' ? 'end' : target} ${name}`));
console.log(
  flags.json
    ? JSON.stringify({ slo: SLO, seed: SEED, duration_ms: DURATION_MS, results })
    : formatTable(
        ['pool', 'load', 'policy', ...titles, 'good/s', 'good %'],
        results.map((result) => [
          result.pool,
          result.load,
          result.policy,
          ...targets.flatMap((target) => names.map((name) => result[target][name])),
          result.goodput_per_second,
          result.good_percent,
        ]),
      ),
);
