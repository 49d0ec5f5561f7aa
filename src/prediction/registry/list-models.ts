/** Lists the models that have a version, samples or answers. */
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
      /** This process answers with this version; it follows a promotion within a second. */
      servedId: servedHere.get(name),
      learned: promoted === undefined ? [] : describeVersion(promoted).learned,
      trainedRows: promoted === undefined ? undefined : countTrainedRows(promoted),
      /** The samples that were reported to the service and are kept. */
      samples: samples.get(name) ?? 0,
      lastTraining: trainings.get(name),
      /** The live errors of the served version, of the prior without one. */
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

/** The rows of files or of samples that a version was made from; undefined for an imported one. */
function countTrainedRows(version: ModelVersion): number | undefined {
  const { rows, observed } = describeVersion(version).source;
  const count = rows ?? observed;
  return typeof count === 'number' ? count : undefined;
}
