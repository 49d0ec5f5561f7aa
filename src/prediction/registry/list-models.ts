/** Lists the models that have a version, samples or live errors. */
import type { Store } from '../../database/store.ts';
import type { AuditChange } from '../../operations/audit-change.ts';
import type { World } from '../../world.ts';
import { readVersionAccuracy } from '../live-accuracy/read-accuracy.ts';
import type { TargetSummary } from '../model/describe-model.ts';
import type { SwappablePredictor } from '../online/predictor.ts';
import { formatModelId } from '../schema/model-name.ts';
import { countSamples, listLastTrainings } from './console-models-store.ts';
import { listModelVersions, type ModelVersion } from './model-store.ts';

export interface ConsoleModelsDependencies {
  readonly store: Store;
  readonly world: World;
  readonly predictor: SwappablePredictor;
  readonly auditChange: AuditChange;
}

export type ModelEntry = Awaited<ReturnType<typeof listModels>>[number];

export async function listModels({ store, world, predictor }: ConsoleModelsDependencies) {
  const [versions, samples, trainings, answered] = await Promise.all([
    listModelVersions(store),
    countSamples(store),
    listLastTrainings(store),
    readVersionAccuracy(store, world.nowMs()),
  ]);
  const ofName = Map.groupBy(versions, (version) => version.name);
  const servedHere = new Map(predictor.list().map(({ targetModel, id }) => [targetModel, id]));
  const names = new Set([...ofName.keys(), ...samples.keys(), ...answered.map(({ targetModel }) => targetModel)]);
  return [...names].sort().map((name) => {
    const own = ofName.get(name) ?? [];
    const promoted = own.find((version) => version.isPromoted);
    return {
      name,
      versionCount: own.length,
      servedVersion: promoted?.version,
      /** The version with which this process answers; a promotion takes effect within a second. */
      servedId: servedHere.get(name),
      learned: promoted === undefined ? [] : describeVersion(promoted).learned,
      trainedRows: promoted === undefined ? undefined : countTrainedRows(promoted),
      /** The number of stored samples. */
      samples: samples.get(name) ?? 0,
      lastTraining: trainings.get(name),
      /** The live errors of the served version, or of the prior if none is served. */
      live: answered.find((own) => own.targetModel === name && own.version === (promoted?.version ?? 0))?.targets,
    };
  });
}

interface Lineage {
  readonly source?: Readonly<Record<string, unknown>>;
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly learned?: readonly TargetSummary[];
}

export function describeVersion({ lineage, ...version }: ModelVersion) {
  const { source = {}, parameters = {}, learned = [] } = JSON.parse(lineage) as Lineage;
  return { ...version, id: formatModelId(version.name, version.version), source, parameters, learned };
}

/** Returns how many rows of files or samples a version was trained on; undefined for an imported version. */
function countTrainedRows(version: ModelVersion): number | undefined {
  const { rows, observed } = describeVersion(version).source;
  const count = rows ?? observed;
  return typeof count === 'number' ? count : undefined;
}
