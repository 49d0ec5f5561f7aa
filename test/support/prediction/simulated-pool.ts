import { createRoundRobin } from '../../../src/prediction/simulator/policies.ts';
import { createRandom } from '../../../src/prediction/simulator/random-draws.ts';
import { createServer, type SimulatedServer } from '../../../src/prediction/simulator/server.ts';
import { type SimulatedObservation, simulate } from '../../../src/prediction/simulator/simulate.ts';
import { createRooflineTimer, type Gpu } from '../../../src/prediction/simulator/step-time.ts';
import { createWorkload } from '../../../src/prediction/simulator/workload.ts';

export interface SimulatedPoolOptions {
  /** One server of each of these, named `server-0`, `server-1`, …. */
  readonly gpus: readonly Gpu[];
  readonly seed: number;
  readonly durationMs: number;
  readonly requestsPerSecondEach: number;
  /** A change of a server at a given time. */
  readonly change?: { readonly atMs: number; readonly apply: (servers: readonly SimulatedServer[]) => void };
}

/** One of each, named `server-0`, `server-1`, …. */
export function createServers(gpus: readonly Gpu[]): SimulatedServer[] {
  return gpus.map((gpu, i) =>
    createServer({
      name: `server-${i}`,
      timer: createRooflineTimer(gpu),
      kvCapacityTokens: gpu.kvCapacityTokens,
      maxBatchTokens: 2048,
      maxSequences: 64,
      blockTokens: 64,
    }),
  );
}

/** A pool of simulated servers under requests that arrive at random, each to the next server in turn. */
export function simulatePool(options: SimulatedPoolOptions): SimulatedObservation[] {
  const { gpus, seed, durationMs, requestsPerSecondEach, change } = options;
  const servers = createServers(gpus);
  const workload = {
    kind: 'poisson',
    requestsPerSecond: requestsPerSecondEach * gpus.length,
    durationMs,
    medianInputTokens: 500,
    medianOutputTokens: 60,
    prefixGroups: 8,
    sharedShare: 0,
    blockTokens: 64,
  } as const;
  const requests = createWorkload(workload, createRandom(seed));
  const changes = change === undefined ? [] : [{ atMs: change.atMs, apply: () => change.apply(servers) }];
  const policy = createRoundRobin();
  return simulate({ servers, requests, policy, scrapeIntervalMs: 100, scrapeDelayMs: 20, changes });
}
