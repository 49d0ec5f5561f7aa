/** Computes the capacity of a model's servers from the served version and stored samples. */
import { migrations } from '../../database/migrations/list.ts';
import { openStore, type StoreOptions } from '../../database/startup/open-store.ts';
import { withStoreClock } from '../../database/store-clock.ts';
import { Failure, type FailureCode, type FailureDetails, isFailure } from '../../errors.ts';
import { createLog } from '../../telemetry/log.ts';
import { realWorld } from '../../world.ts';
import type { LatencyModel } from '../model/model.ts';
import { decodeModel } from '../model/model-codec.ts';
import { listSamples } from '../observations/sample-store.ts';
import { listPromotedModels, readModelFile } from '../registry/model-store.ts';
import type { Observation } from '../schema/observation.ts';
import { normalizePodType } from '../schema/pod-type.ts';
import { type Capacity, findCapacity } from './find-capacity.ts';
import { findConcurrency } from './find-concurrency.ts';
import { findNewestLoads, listLoads, type ReportedLoad } from './load-curve.ts';
import { createObservedPool, type MeanLengths } from './observed-pool.ts';
import type { LatencyLimits } from './search-rates.ts';
import type { QueuePool } from './simulate-queue.ts';

export interface CapacityOrder {
  readonly targetModel: string;
  readonly limits: LatencyLimits;
  /** The mean length of a prompt; that of the samples when undefined. */
  readonly promptTokens: number | undefined;
  /** The mean length of an answer; that of the samples when undefined. */
  readonly outputTokens: number | undefined;
  readonly servers: readonly string[] | undefined;
  readonly podType: string;
}

export interface CapacityFound {
  readonly version: number;
  /** Undefined if even idle servers break a limit. */
  readonly capacity: Capacity | undefined;
  readonly lengths: MeanLengths;
  readonly servers: readonly ServerRoom[];
}

/** How many requests a server can have under way while the limits hold, and the load that its newest request met. */
export interface ServerRoom {
  readonly name: string;
  readonly maximum: number;
  readonly reported: ReportedLoad | undefined;
}

/** A failure is returned as a value, since an error thrown in another process would lose its code. */
export type CapacityAnswer =
  | CapacityFound
  | { readonly refusal: { readonly code: FailureCode; readonly message: string; readonly details: FailureDetails } };

export interface CapacityPlace {
  readonly place: Pick<StoreOptions, 'dataDir' | 'databaseUrl'>;
}

const MAX_SAMPLES = 20_000;

export async function readCapacity(order: CapacityOrder & CapacityPlace): Promise<CapacityAnswer> {
  try {
    return await find(order);
  } catch (error) {
    if (!isFailure(error)) throw error;
    return { refusal: { code: error.code, message: error.message, details: error.details } };
  }
}

async function find({ place, ...order }: CapacityOrder & CapacityPlace): Promise<CapacityFound> {
  const { targetModel } = order;
  await using store = await openStore({ ...place, poolSize: 1, migrations, log: createLog('warn'), world: realWorld });
  const promoted = (await listPromotedModels(store)).find(({ name }) => name === targetModel);
  if (promoted === undefined)
    throw new Failure('not_found', `Cannot find the capacity: no version of the model "${targetModel}" is served`, {
      field: 'model',
    });
  const { version } = promoted;
  const model = decodeModel(await readModelFile(store, targetModel, version));
  const nowMs = withStoreClock(realWorld, store).nowMs();
  const stored = await listSamples(store, targetModel, { limit: MAX_SAMPLES, nowMs });
  const samples = stored.map(({ observation }) => observation);
  return { version, ...computeCapacity({ model, samples }, order, nowMs) };
}

/** The model of a target, and the samples that show its servers under load. */
export interface CapacitySource {
  readonly model: LatencyModel;
  readonly samples: readonly Observation[];
}

/** Throws `invalid` with the field of the request that cannot be answered from these samples. */
export function computeCapacity(
  { model, samples }: CapacitySource,
  { limits, ...asked }: Omit<CapacityOrder, 'targetModel'>,
  nowMs: number,
): Omit<CapacityFound, 'version'> {
  const pool = createObservedPool({ model, samples, ...asked });
  const ofPod = samples.filter(({ input }) => normalizePodType(input.podType) === normalizePodType(asked.podType));
  const capacity = findCapacity(pool, limits);
  return {
    capacity,
    lengths: pool.lengths,
    servers: listRooms(pool, { limits, loads: findNewestLoads(listLoads(ofPod), nowMs) }),
  };
}

interface ShownRooms {
  readonly limits: LatencyLimits;
  readonly loads: ReadonlyMap<string, ReportedLoad>;
}

function listRooms({ servers, model }: QueuePool, { limits, loads }: ShownRooms): ServerRoom[] {
  return servers.map((server) => {
    const maximum = findConcurrency(model, server, limits);
    return { name: server.name, maximum, reported: loads.get(server.name) };
  });
}
