/** Shows models to the console: versions, what is served, how accurate it is. */
import { Failure } from '../../errors.ts';
import type { Actor } from '../../operations/operation.ts';
import {
  type ErrorsQuery,
  readAccuracyOverTime,
  readErrorParts,
  readErrorsByLoad,
  readPodTypeAccuracy,
  readServerAccuracy,
  readServerOverTime,
  type SeriesQuery,
  type ServerAccuracy,
} from '../live-accuracy/read-accuracy.ts';
import type { LatencyModel } from '../model/model.ts';
import { listDriftAlarmHours } from '../observations/drift-alarm-store.ts';
import { LOADS, splitLoadClass } from '../observations/load-class.ts';
import { PREDICTION_TARGETS } from '../schema/observation-table.ts';
import { compareVersions } from './compare-versions.ts';
import { countLoadClasses, listPastPromotions } from './console-models-store.ts';
import { type ConsoleModelsDependencies, describeVersion, listModels } from './list-models.ts';
import { promoteVersion, rollBackVersion } from './manage-models.ts';
import { readModelHealth } from './model-health.ts';
import { listModelVersions, type ModelVersion } from './model-store.ts';
import { createEffectsReader } from './read-input-effects.ts';
import { predictWhatIf, WHAT_IF_FIELDS } from './what-if.ts';

export type ConsoleModels = ReturnType<typeof createConsoleModels>;

export function createConsoleModels(dependencies: ConsoleModelsDependencies) {
  const { store, world } = dependencies;
  return {
    listModels: () => listModels(dependencies),
    readHealth: async () => readModelHealth(dependencies, await listModels(dependencies)),
    /** Throws `not_found` for an unknown name. */
    async readModel(name: string) {
      const entry = (await listModels(dependencies)).find((model) => model.name === name);
      if (entry === undefined) throw new Failure('not_found', `Cannot find the model "${name}"`);
      const query = { targetModel: name, nowMs: world.nowMs() };
      const [versions, promotions, countByClass, podTypes, servers] = await Promise.all([
        listModelVersions(store, name),
        listPastPromotions(store, name),
        countLoadClasses(store, name, query.nowMs),
        readPodTypeAccuracy(store, query),
        readServerAccuracy(store, query),
      ]);
      return {
        ...entry,
        versions: versions.map(describeVersion),
        promotions,
        /** The target of a rollback: the version that was served before, if it still exists. */
        previous: findPrevious(versions, promotions),
        podTypes,
        servers: listServers(dependencies, name, servers),
        loads: LOADS.map(({ field, edges }, position) => ({ field, edges, counts: sumLoads(countByClass, position) })),
      };
    },
    compare: (name: string, version: number, other: number) =>
      compareVersions(store, { name, version, other, nowMs: world.nowMs() }),
    /** The data for the charts of a model, up to 30 days back. */
    charts: {
      readAccuracyOverTime: (query: SeriesQuery) => readAccuracyOverTime(store, query),
      readServerOverTime: (query: SeriesQuery, server: string) => readServerOverTime(store, query, server),
      readErrorsByLoad: (query: ErrorsQuery) => readErrorsByLoad(store, query),
      listErrorParts: (query: Omit<ErrorsQuery, 'axis'>) => readErrorParts(store, query),
      listDriftAlarmHours: (name: string, fromMs: number) => listDriftAlarmHours(store, name, fromMs),
    },
    readEffects: createEffectsReader(dependencies),
    whatIf: {
      fields: WHAT_IF_FIELDS,
      predict: (name: string, texts: Readonly<Record<string, string>>) =>
        predictWhatIf(dependencies.predictor, name, texts),
    },
    /** Throws `not_found` for an unknown version. */
    promote: async (name: string, version: number, by: Administrator) => {
      await promoteVersion(dependencies, toActor(by), { name, version });
    },
    /** Throws `conflict` unless the rollback leads to this version. */
    rollBack: async (name: string, expectedVersion: number, by: Administrator) => {
      await rollBackVersion(dependencies, toActor(by), { name, expectedVersion });
    },
  };
}

/** A person who administers the service on its pages. */
export interface Administrator {
  readonly id: string;
  readonly login: string;
}

function toActor({ id, login }: Administrator): Actor {
  return { userId: id, login, isAdmin: true };
}

/** Finds the target of a rollback: the last version promoted before the served one that still exists and was not undone. */
function findPrevious(
  versions: readonly ModelVersion[],
  promotions: readonly { readonly version: number; readonly undoneAtMs: number | null }[],
): number | undefined {
  const others = new Set(versions.filter(({ isPromoted }) => !isPromoted).map(({ version }) => version));
  return promotions.find(({ version, undoneAtMs }) => undoneAtMs === null && others.has(version))?.version;
}

/** Lists the accuracy of each server with the factor that the served model learned for it: 1.2 is 20 % slower than the pool. */
function listServers({ predictor }: ConsoleModelsDependencies, name: string, answered: readonly ServerAccuracy[]) {
  const factors = predictor.hasModel(name)
    ? readServerFactors(predictor.live(name).model)
    : new Map<string, ServerFactors>();
  const reported = new Map(answered.map((server) => [server.server, server]));
  return [...new Set([...factors.keys(), ...reported.keys()])].sort().map((server) => ({
    server,
    factors: factors.get(server) ?? {},
    lastMs: reported.get(server)?.lastMs,
    scores: reported.get(server)?.targets ?? {},
  }));
}

type ServerFactors = { ttft?: number; tpot?: number };

/** The slot of a pod type describes its servers better than the slot for all, so it overwrites that. */
function readServerFactors({ pooled, slots }: LatencyModel): Map<string, ServerFactors> {
  const byServer = new Map<string, ServerFactors>();
  for (const slot of [pooled, ...slots.values()])
    for (const target of PREDICTION_TARGETS)
      for (const [server, offset] of slot[target]?.offsets.servers ?? [])
        byServer.set(server, { ...byServer.get(server), [target]: Math.exp(offset) });
  return byServer;
}

function sumLoads(countByClass: ReadonlyMap<number, number>, position: number): number[] {
  const counts = Array.from({ length: LOADS[position]!.edges.length + 1 }, () => 0);
  for (const [loadClass, count] of countByClass) counts[splitLoadClass(loadClass)[position]!]! += count;
  return counts;
}
