/**
 * Measures how much routing by predictions gains on the simulator, compared with a perfect oracle: `node bench/routing.ts
 * [--seeds 1,2,3] [--pools like,unlike | --servers LIST] [--rates 12,30,36] [--duration 200] [--warm-up 80]
 * [--trace FILE] [--policies NAME;…] [--over grpc] [--html FILE] [--json]`. Simulated time: the machine does not matter.
 *
 * "trivet" starts untrained at the first request of each run; requests before the end of the warm-up are left out of the figures
 * and shown apart. "trees, p90" has learned from a recording of the same pool with another seed.
 */
import { writeFileSync } from 'node:fs';
import type { Statistic } from '../src/prediction/model/calibration.ts';
import type { LatencyModel } from '../src/prediction/model/model.ts';
import { createLiveModel } from '../src/prediction/online/live-model.ts';
import { createOracle, createSelfishOracle } from '../src/prediction/simulator/oracle.ts';
import {
  createCountedLoadAndPrefix,
  createLeastRequests,
  createLoadAndPrefix,
  createRoundRobin,
} from '../src/prediction/simulator/policies.ts';
import {
  type Candidate,
  type RoutingPolicy,
  type SimulatedObservation,
  simulate,
  simulateRemotely,
} from '../src/prediction/simulator/simulate.ts';
import { DEFAULT_TRAINING, trainModel } from '../src/prediction/training/train-model.ts';
import { describeInput, type GatewayInput, scoreForTails } from './routing/gateway.ts';
import { startGrpcPolicy } from './routing/grpc-policy.ts';
import { tabulate } from './routing/learner.ts';
import {
  createScoredPolicy,
  createStaticPolicy,
  createTrivetPolicy,
  describeScraped,
} from './routing/predicted-policy.ts';
import { formatResults, type Result, summarize } from './routing/results.ts';
import { renderRouting } from './routing/routing-report.ts';
import { createPool, createRequests, findPool, POOL_NAMES, readTrace, type Scenario } from './routing/scenarios.ts';
import { readBenchFlags } from './support/bench-flags.ts';

const { values: flags } = readBenchFlags({
  options: {
    seeds: { type: 'string', default: '1,2,3' },
    pools: { type: 'string', default: POOL_NAMES.join(',') },
    servers: { type: 'string' },
    rates: { type: 'string', default: '12,30,36' },
    duration: { type: 'string', default: '200' },
    'warm-up': { type: 'string', default: '80' },
    trace: { type: 'string' },
    policies: { type: 'string' },
    over: { type: 'string' },
    html: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
const WARM_UP_MS = 1000 * Number(flags['warm-up']);
/** The oracle learns nothing: its warm-up only fills the servers. */
const ORACLE_WARM_UP_MS = 20_000;
const TIMING = { scrapeIntervalMs: 200, scrapeDelayMs: 50 };
/** The seed of the recording for "trees, p90", which no measured run has; prime, so that it is another part of a trace. */
const RECORDING_SEED = 1009;

/** Runs only if named: it shows that a request's own time is the wrong objective, however well predicted. */
const SELFISH = 'selfish oracle';
/** Shows the value of the score without online learning. */
const SCORED = 'trees, same score';
/** The other score of docs/how-to/route.md: even load and early ends for the slowest, at the expense of the median. */
const TAILS = 'trivet, tails';

type Runner = (scenario: Scenario, seed: number) => SimulatedObservation[] | Promise<SimulatedObservation[]>;

const RUNNERS: Readonly<Record<string, Runner>> = {
  'round-robin': (scenario, seed) => run(scenario, seed, createRoundRobin()),
  'least-requests': (scenario, seed) => run(scenario, seed, createLeastRequests()),
  'load+prefix': (scenario, seed) => run(scenario, seed, createLoadAndPrefix()),
  'load+prefix, own counts': (scenario, seed) => run(scenario, seed, createCountedLoadAndPrefix()),
  'trees, p90': (scenario, seed) =>
    run(
      scenario,
      seed,
      createStaticPolicy(learnFromRecording(scenario, seed, { describe: describeScraped, statistic: 'p90' })),
    ),
  [SCORED]: (scenario, seed) => {
    const model = learnFromRecording(scenario, seed, { describe: describeInput, statistic: 'p50' });
    return run(scenario, seed, createScoredPolicy(SCORED, createLiveModel(model)));
  },
  trivet: (scenario, seed) => run(scenario, seed, createTrivetPolicy()),
  [TAILS]: (scenario, seed) => run(scenario, seed, createTrivetPolicy(TAILS, scoreForTails)),
  ...(flags.over === 'grpc' ? { 'trivet over gRPC': runOverGrpc } : {}),
  oracle: (scenario, seed) => runOracle(scenario, seed, createOracle),
  [SELFISH]: (scenario, seed) => runOracle(scenario, seed, createSelfishOracle),
};

function run(scenario: Scenario, seed: number, policy: RoutingPolicy): SimulatedObservation[] {
  return simulate({ servers: createPool(scenario), requests: createRequests(scenario, seed), policy, ...TIMING });
}

interface Recording {
  readonly describe: (candidate: Candidate) => GatewayInput;
  readonly statistic: Statistic;
}

/** Trains a model on the same pool with another seed, routed by the heuristic. */
function learnFromRecording(scenario: Scenario, seed: number, { describe, statistic }: Recording): LatencyModel {
  const recorded = run(scenario, seed + RECORDING_SEED, createLoadAndPrefix()).map((row) => ({
    input: describe(row.candidate),
    atMs: row.outcome.dispatchedMs,
    ttftMs: row.ttftMs,
    tpotMs: row.tpotMs,
  }));
  return trainModel('m@1', tabulate(recorded), { ...DEFAULT_TRAINING, statistic });
}

async function runOverGrpc(scenario: Scenario, seed: number): Promise<SimulatedObservation[]> {
  await using remote = await startGrpcPolicy();
  const requests = createRequests(scenario, seed);
  const observations = await simulateRemotely({
    servers: createPool(scenario),
    requests,
    policy: remote.policy,
    ...TIMING,
  });
  console.error(`${remote.calls.predict} calls of Predict and ${remote.calls.report} of Report over gRPC`);
  return observations;
}

function runOracle(scenario: Scenario, seed: number, createPolicy: typeof createOracle): SimulatedObservation[] {
  const servers = createPool(scenario);
  const requests = createRequests(scenario, seed).filter(
    ({ arrivalMs }) => arrivalMs >= WARM_UP_MS - ORACLE_WARM_UP_MS,
  );
  return simulate({ servers, requests, policy: createPolicy(servers), ...TIMING });
}

async function runScenario(scenario: Scenario): Promise<Result[]> {
  const wanted = flags.policies?.split(';') ?? Object.keys(RUNNERS).filter((name) => name !== SELFISH);
  const results: Result[] = [];
  for (const policy of wanted) {
    const runner = RUNNERS[policy];
    if (runner === undefined)
      throw new Error(`--policies must be of ${Object.keys(RUNNERS).join(';')}, got "${policy}"`);
    const runs: SimulatedObservation[][] = [];
    for (const seed of flags.seeds.split(',')) runs.push(await runner(scenario, Number(seed)));
    results.push({ scenario, policy, runs });
    console.error(`${scenario.pool}, ${scenario.rate} requests/s: ${policy}`);
  }
  return results;
}

const trace = flags.trace === undefined ? undefined : readTrace(flags.trace);
const durationMs = 1000 * Number(flags.duration);
const pools = (flags.servers === undefined ? flags.pools.split(',') : [flags.servers]).map(findPool);
const results: Result[] = [];
for (const pool of pools)
  for (const rate of flags.rates.split(','))
    results.push(...(await runScenario({ ...pool, rate: Number(rate), durationMs, trace })));

const window = { fromMs: WARM_UP_MS, toMs: durationMs };
const summaries = summarize(results, window);
if (flags.html !== undefined) writeFileSync(flags.html, renderRouting(results, summaries, window));
console.log(flags.json ? JSON.stringify({ flags, summaries }) : formatResults(summaries));
