/** The capacity of the servers of a model, from the served version and the samples of a store. */
import { migrations } from '../../database/migrations/list.ts';
import { openStore, type StoreOptions } from '../../database/startup/open-store.ts';
import { Failure, type FailureCode, isFailure } from '../../errors.ts';
import { createLog } from '../../telemetry/log.ts';
import { realWorld } from '../../world.ts';
import { decodeModel } from '../model/model-codec.ts';
import { listSamples } from '../observations/sample-store.ts';
import { listPromotedModels, readModelFile } from '../registry/model-store.ts';
import { type Capacity, findCapacity, type LatencyLimits } from './find-capacity.ts';
import { createObservedPool } from './observed-pool.ts';

export interface CapacityOrder {
  readonly place: Pick<StoreOptions, 'dataDir' | 'databaseUrl'>;
  readonly targetModel: string;
  readonly limits: LatencyLimits;
  readonly outputTokens: number;
  readonly servers: readonly string[] | undefined;
  readonly podType: string;
}

/** A failure is returned as a value, since an error thrown in another process would lose its code. */
export type CapacityAnswer =
  | { readonly capacity: Capacity | undefined }
  | { readonly refusal: { readonly code: FailureCode; readonly message: string } };

const MAX_SAMPLES = 20_000;

export async function readCapacity(order: CapacityOrder): Promise<CapacityAnswer> {
  try {
    return { capacity: await find(order) };
  } catch (error) {
    if (!isFailure(error)) throw error;
    return { refusal: { code: error.code, message: error.message } };
  }
}

async function find({ place, targetModel, limits, ...pool }: CapacityOrder): Promise<Capacity | undefined> {
  await using store = await openStore({ ...place, poolSize: 1, migrations, log: createLog('warn'), world: realWorld });
  const promoted = (await listPromotedModels(store)).find(({ name }) => name === targetModel);
  if (promoted === undefined)
    throw new Failure('not_found', `Cannot find the capacity: no version of the model "${targetModel}" is served`);
  const model = decodeModel(await readModelFile(store, targetModel, promoted.version));
  const samples = (await listSamples(store, targetModel, MAX_SAMPLES)).map(({ observation }) => observation);
  return findCapacity(createObservedPool({ model, samples, ...pool }), limits);
}
