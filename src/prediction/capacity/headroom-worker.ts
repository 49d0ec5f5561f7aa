/**
 * Computes each server's capacity in requests every minute, and reads reported loads every 10 s. Each read of `/metrics` returns
 * their difference (the headroom) and their ratio: the sum of the ratios is the number of replicas that is needed.
 */
import { setImmediate as yieldToCalls } from 'node:timers/promises';
import { Gauge } from 'prom-client';
import type { Store } from '../../database/store.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { createRoundWorker } from '../../workers/round-worker.ts';
import type { Worker } from '../../workers/worker.ts';
import type { World } from '../../world.ts';
import type { LatencyModel } from '../model/model.ts';
import { listSampledLoads, readSamplePages } from '../observations/sample-store.ts';
import type { Observation } from '../schema/observation.ts';
import { normalizePodType } from '../schema/pod-type.ts';
import { findConcurrency } from './find-concurrency.ts';
import { findNewestLoads, isFreshReport, listLoads, type ReportedLoad } from './load-curve.ts';
import { countTtfts, MIN_SAMPLES, MIN_TTFT_SAMPLES, observeInSteps } from './observed-pool.ts';
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
  /** Returns the served models that were learned or imported. */
  readonly listModels: () => readonly { readonly targetModel: string; readonly model: LatencyModel }[];
  /** Returns the requests under way at a server by its scraped metrics; undefined without fresh ones. */
  readonly readUnderWay: (server: string) => number | undefined;
}

export interface HeadroomWorker extends Worker {
  /** Computes the capacities again. */
  update(signal: AbortSignal): Promise<void>;
  /** Reads the loads that the newest requests met, for models with servers that are not scraped. */
  updateLoads(signal: AbortSignal): Promise<void>;
}

/** The time between computations of capacities, each of which reads samples and calls the models some thousand times. */
const REST_MS = 60_000;
const SAMPLES = 5000;
/** The time between reads of reported loads: several in the minute after which a load is too old. */
const LOADS_REST_MS = 10_000;
const LOADS = 1000;
/** At most this many series of a gauge, because callers name models and servers. Series of servers that are gone are removed. */
const MAX_SERIES = 1024;

interface ServerCapacity {
  readonly targetModel: string;
  readonly server: string;
  readonly capacity: number;
}

interface ModelHeadroom {
  readonly capacities: readonly ServerCapacity[];
  /** By server. */
  readonly loads: ReadonlyMap<string, ReportedLoad>;
}

export function createHeadroomWorker(dependencies: HeadroomDependencies): HeadroomWorker {
  const { store, world, log } = dependencies;
  const known = new Map<string, ModelHeadroom>();
  let updatedMs = Number.NEGATIVE_INFINITY;

  function readUnderWay(server: string, load: ReportedLoad | undefined): number | undefined {
    const isFresh = load !== undefined && isFreshReport(load.atMs, world.nowMs());
    return dependencies.readUnderWay(server) ?? (isFresh ? load.underWay : undefined);
  }

  createHeadroomGauges(dependencies.metrics, () =>
    [...known.values()].flatMap(({ capacities, loads }) =>
      capacities.map((each) => ({ ...each, underWay: readUnderWay(each.server, loads.get(each.server)) })),
    ),
  );

  async function update(signal: AbortSignal): Promise<void> {
    updatedMs = world.monotonicMs();
    const models = dependencies.listModels();
    for (const { targetModel, model } of models) {
      if (signal.aborted) return;
      known.set(targetModel, await findHeadroom(dependencies, targetModel, model));
    }
    for (const name of known.keys()) if (!models.some(({ targetModel }) => targetModel === name)) known.delete(name);
  }

  async function updateLoads(signal: AbortSignal): Promise<void> {
    for (const [targetModel, { capacities, loads }] of known) {
      if (signal.aborted) return;
      if (capacities.every(({ server }) => dependencies.readUnderWay(server) !== undefined)) continue;
      const read = await listSampledLoads(store, targetModel, { limit: LOADS, nowMs: world.nowMs() });
      known.set(targetModel, { capacities, loads: findNewestLoads([...loads.values(), ...read], world.nowMs()) });
    }
  }

  const round = async (signal: AbortSignal) =>
    world.monotonicMs() - updatedMs >= REST_MS ? await update(signal) : await updateLoads(signal);
  const worker = createRoundWorker({ name: 'headroom', restMs: LOADS_REST_MS, world, log, round });
  return { ...worker, update, updateLoads };
}

async function findHeadroom(
  dependencies: HeadroomDependencies,
  targetModel: string,
  model: LatencyModel,
): Promise<ModelHeadroom> {
  const { store, world } = dependencies;
  const samples: Observation[] = [];
  const newest = { limit: SAMPLES, nowMs: world.nowMs() };
  for await (const page of readSamplePages(store, targetModel, newest))
    for (const { observation } of page) samples.push(observation);
  const capacities = await listCapacities(dependencies, { targetModel, model, samples });
  return { capacities, loads: findNewestLoads(listLoads(samples), world.nowMs()) };
}

interface SampledModel {
  readonly targetModel: string;
  readonly model: LatencyModel;
  readonly samples: readonly Observation[];
}

async function listCapacities(
  { limits, outputTokens, log }: HeadroomDependencies,
  { targetModel, model, samples }: SampledModel,
): Promise<ServerCapacity[]> {
  const capacities: ServerCapacity[] = [];
  for (const [podType, ofPod] of Map.groupBy(samples, ({ input }) => normalizePodType(input.podType))) {
    const servers = listMeasured(ofPod);
    if (servers.length === 0 || ofPod.length < MIN_SAMPLES) {
      log.debug({ model: targetModel, podType }, 'Too few samples to work out a headroom');
      continue;
    }
    const observed = await completeSteps(observeInSteps({ model, samples: ofPod, servers, podType, outputTokens }));
    for (const server of observed.servers) {
      await yieldToCalls();
      const capacity = findConcurrency(observed.model, server, limits);
      capacities.push({ targetModel, server: server.name, capacity });
    }
  }
  return capacities;
}

/** Runs all steps, and lets calls be answered between them. */
async function completeSteps<T>(steps: Generator<void, T>): Promise<T> {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    await yieldToCalls();
  }
}

/** Lists the servers with enough samples of TTFT and of TPOT. */
function listMeasured(samples: readonly Observation[]): string[] {
  return [...Map.groupBy(samples, ({ input }) => input.serverIp)].flatMap(([server, own]) =>
    countTpots(own) >= MIN_TPOT_SAMPLES && countTtfts(own) >= MIN_TTFT_SAMPLES ? [server] : [],
  );
}

function countTpots(samples: readonly Observation[]): number {
  return samples.filter(({ tpotMs }) => tpotMs !== undefined).length;
}

type KnownHeadroom = ServerCapacity & { readonly underWay: number | undefined };

export function createHeadroomGauges(metrics: Metrics, list: () => readonly KnownHeadroom[]): void {
  const open = (name: string, help: string, read: (known: KnownHeadroom) => number | undefined) =>
    new Gauge({
      name,
      help,
      labelNames: ['model', 'server'],
      registers: [metrics],
      collect() {
        this.reset();
        const shown = list().flatMap((known) => {
          const value = read(known);
          return value === undefined ? [] : [{ model: known.targetModel, server: known.server, value }];
        });
        for (const { model, server, value } of shown.slice(0, MAX_SERIES)) this.set({ model, server }, value);
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
