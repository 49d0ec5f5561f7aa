/** Computes regularly how many more requests each server can take, as metrics for autoscalers. */
import { setImmediate as yieldToCalls } from 'node:timers/promises';
import { Gauge } from 'prom-client';
import type { Store } from '../../database/store.ts';
import { createLabelLimit } from '../../telemetry/label-limit.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { createRoundWorker } from '../../workers/round-worker.ts';
import type { Worker } from '../../workers/worker.ts';
import type { World } from '../../world.ts';
import type { LatencyModel } from '../model/model.ts';
import { listSamples } from '../observations/sample-store.ts';
import type { Observation } from '../schema/observation.ts';
import { normalizePodType } from '../schema/pod-type.ts';
import { findConcurrency } from './find-concurrency.ts';
import { countUnderWay } from './load-curve.ts';
import { countTtfts, MIN_SAMPLES, MIN_TTFT_SAMPLES, observeServers } from './observed-pool.ts';
import type { LatencyLimits } from './search-rates.ts';
import { MIN_TPOT_SAMPLES } from './tpot-curve.ts';

export interface HeadroomDependencies {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly limits: LatencyLimits;
  /** The mean length of an answer. */
  readonly outputTokens: number;
  /** The learned models that are served. */
  readonly listModels: () => readonly { readonly targetModel: string; readonly model: LatencyModel }[];
  /** Requests under way at a server by its own metrics; undefined when they are not read. */
  readonly readUnderWay: (server: string) => number | undefined;
}

export interface HeadroomWorker extends Worker {
  /** Computes the capacities again. */
  update(signal: AbortSignal): Promise<void>;
}

/** Each round reads samples and asks the models some thousand times. */
const REST_MS = 60_000;
const SAMPLES = 5000;
const MAX_LABELS = 1024;
const MAX_REPORT_AGE_MS = 60_000;

/** An older report says nothing about the load now, nor does one that is dated ahead by a wrong clock. */
export function isFreshReport(atMs: number, nowMs: number): boolean {
  return Math.abs(nowMs - atMs) <= MAX_REPORT_AGE_MS;
}

interface ServerHeadroom {
  readonly targetModel: string;
  readonly server: string;
  readonly capacity: number;
  /** The newest sample reported this. */
  readonly reported: { readonly underWay: number; readonly atMs: number };
}

export function createHeadroomWorker(dependencies: HeadroomDependencies): HeadroomWorker {
  const { world, log } = dependencies;
  let known: readonly ServerHeadroom[] = [];

  function readUnderWay({ server, reported }: ServerHeadroom): number | undefined {
    const isFresh = isFreshReport(reported.atMs, world.nowMs());
    return dependencies.readUnderWay(server) ?? (isFresh ? reported.underWay : undefined);
  }

  createHeadroomGauges(dependencies.metrics, () =>
    known.map((server) => ({ ...server, underWay: readUnderWay(server) })),
  );

  async function update(signal: AbortSignal): Promise<void> {
    const next: ServerHeadroom[] = [];
    for (const { targetModel, model } of dependencies.listModels()) {
      if (signal.aborted) return;
      next.push(...(await listHeadrooms(dependencies, targetModel, model)));
    }
    known = next;
  }

  return { ...createRoundWorker({ name: 'headroom', restMs: REST_MS, world, log, round: update }), update };
}

async function listHeadrooms(
  { store, limits, outputTokens, log }: HeadroomDependencies,
  targetModel: string,
  model: LatencyModel,
): Promise<ServerHeadroom[]> {
  const samples = (await listSamples(store, targetModel, SAMPLES)).map(({ observation }) => observation);
  const headrooms: ServerHeadroom[] = [];
  for (const [podType, ofPod] of Map.groupBy(samples, ({ input }) => normalizePodType(input.podType))) {
    const servers = listMeasured(ofPod);
    if (servers.size === 0 || ofPod.length < MIN_SAMPLES) {
      log.debug({ model: targetModel, podType }, 'Too few samples to work out a headroom');
      continue;
    }
    const options = { samples: ofPod, servers: [...servers.keys()], podType, outputTokens };
    const observed = observeServers({ model, ...options });
    for (const server of observed.servers) {
      await yieldToCalls();
      const { input, atMs = 0 } = servers.get(server.name)!;
      const capacity = findConcurrency(observed.model, server, limits);
      headrooms.push({
        targetModel,
        server: server.name,
        capacity,
        reported: { underWay: countUnderWay(input), atMs },
      });
    }
  }
  return headrooms;
}

/** Servers with enough samples of both times, and the newest sample of each. */
function listMeasured(samples: readonly Observation[]): ReadonlyMap<string, Observation> {
  const newest = new Map<string, Observation>();
  for (const [server, own] of Map.groupBy(samples, ({ input }) => input.serverIp))
    if (countTpots(own) >= MIN_TPOT_SAMPLES && countTtfts(own) >= MIN_TTFT_SAMPLES) newest.set(server, own.at(-1)!);
  return newest;
}

function countTpots(samples: readonly Observation[]): number {
  return samples.filter(({ tpotMs }) => tpotMs !== undefined).length;
}

type KnownHeadroom = ServerHeadroom & { readonly underWay: number | undefined };

function createHeadroomGauges(metrics: Metrics, list: () => readonly KnownHeadroom[]): void {
  const labelOf = createLabelLimit(MAX_LABELS);
  const open = (name: string, help: string, read: (known: KnownHeadroom) => number | undefined) =>
    new Gauge({
      name,
      help,
      labelNames: ['model', 'server'],
      registers: [metrics],
      collect() {
        this.reset();
        for (const known of list()) {
          const value = read(known);
          if (value !== undefined) this.set({ model: known.targetModel, server: labelOf(known.server) }, value);
        }
      },
    });
  open(
    'trivet_prediction_capacity_requests',
    'Requests that a server can have under way while the limits of the headroom hold.',
    ({ capacity }) => capacity,
  );
  open(
    'trivet_prediction_headroom_requests',
    'trivet_prediction_capacity_requests less the requests under way now; below 0 when the limits do not hold.',
    ({ capacity, underWay }) => (underWay === undefined ? undefined : capacity - underWay),
  );
  open(
    'trivet_prediction_capacity_used_ratio',
    'Requests under way divided by those that a server can have: scale so that its mean stays below 1.',
    ({ capacity, underWay }) => (underWay === undefined ? undefined : underWay / Math.max(1, capacity)),
  );
}
