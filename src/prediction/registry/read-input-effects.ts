/** Reads the effects of inputs from the store, or computes them now. */
import type { Store } from '../../database/store.ts';
import type { World } from '../../world.ts';
import { decodeModel } from '../model/model-codec.ts';
import { readSamplePages } from '../observations/sample-store.ts';
import { appendObservation, createObservationTable, type ObservationTable } from '../schema/observation-table.ts';
import { measureInputEffects } from './input-effects.ts';
import { findInputEffects, type KeptEffects, keepInputEffects } from './input-effects-store.ts';
import { listModelVersions, readModelFile } from './model-store.ts';

/** At most this many samples are used: about a second of processor time, in parts. */
const MAX_ROWS = 300;
/** With fewer samples, importances are chance. */
const MIN_ROWS = 50;
const LIFETIME_MS = 3_600_000;

export interface EffectsDependencies {
  readonly store: Store;
  readonly world: Pick<World, 'nowMs'>;
}

/** Resolves with undefined without a served version, or with too few samples. */
export type ReadInputEffects = (targetModel: string) => Promise<KeptEffects | undefined>;

/** Concurrent callers share one computation from its first read on, because reads of a database can finish in any order. */
export function createEffectsReader(dependencies: EffectsDependencies): ReadInputEffects {
  const underWay = new Map<string, Promise<KeptEffects | undefined>>();
  return async (targetModel) => {
    const own =
      underWay.get(targetModel) ?? read(dependencies, targetModel).finally(() => underWay.delete(targetModel));
    underWay.set(targetModel, own);
    return await own;
  };
}

async function read({ store, world }: EffectsDependencies, targetModel: string): Promise<KeptEffects | undefined> {
  const versions = await listModelVersions(store, targetModel);
  const served = versions.find(({ isPromoted }) => isPromoted);
  if (served === undefined) return undefined;
  const of = { targetModel, version: served.version };
  const untilMs = world.nowMs();
  const kept = await findInputEffects(store, of, { fromMs: untilMs - LIFETIME_MS, untilMs });
  return kept ?? (await compute(store, of, untilMs));
}

async function compute(
  store: Store,
  { targetModel, version }: { readonly targetModel: string; readonly version: number },
  madeAtMs: number,
): Promise<KeptEffects | undefined> {
  const table = await readTable(store, targetModel, madeAtMs);
  if (table.count < MIN_ROWS) return undefined;
  const model = decodeModel(await readModelFile(store, targetModel, version));
  const effects = await measureInputEffects(model, table);
  await keepInputEffects(store, { targetModel, version }, { ...effects, madeAtMs });
  return { ...effects, version, madeAtMs };
}

async function readTable(store: Store, targetModel: string, nowMs: number): Promise<ObservationTable> {
  const table = createObservationTable();
  for await (const page of readSamplePages(store, targetModel, { limit: MAX_ROWS, nowMs }))
    for (const { observation } of page) appendObservation(table, observation);
  return table;
}
