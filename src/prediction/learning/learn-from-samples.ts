/** Trains a challenger from stored samples, tests it against the served version, and returns the winner. */
import { migrations } from '../../database/migrations/list.ts';
import { openStore, type StoreOptions } from '../../database/startup/open-store.ts';
import type { Store } from '../../database/store.ts';
import { withStoreClock } from '../../database/store-clock.ts';
import { isFailure } from '../../errors.ts';
import { createLog } from '../../telemetry/log.ts';
import { realWorld } from '../../world.ts';
import type { LatencyModel } from '../model/model.ts';
import { decodeModel } from '../model/model-codec.ts';
import { MAX_AHEAD_MS, readLastSampleId, readSamplePages } from '../observations/sample-store.ts';
import { listModelVersions, type ModelVersion, readModelFile } from '../registry/model-store.ts';
import { findLastSampleId, type PackedModel, packModel } from '../registry/publish-model.ts';
import {
  appendObservation,
  createObservationTable,
  type ObservationTable,
  selectRows,
} from '../schema/observation-table.ts';
import { type Challenge, challengeChampion } from './challenge.ts';

export interface TrainingOrder {
  readonly place: Pick<StoreOptions, 'dataDir' | 'databaseUrl'>;
  readonly targetModel: string;
}

export interface TrainingAnswer extends Omit<Challenge, 'winner'> {
  readonly rows: number;
  /** The sample that was added last when the training began; 0 without samples. */
  readonly lastSampleId: number;
  /** The version that was served when the training began; undefined without one. */
  readonly championVersion: number | undefined;
  /** Undefined when the new model was not better. */
  readonly winner: PackedModel | undefined;
}

const MAX_ROWS = 50_000;

export async function learnFromSamples(
  { place, targetModel }: TrainingOrder,
  maxRows = MAX_ROWS,
): Promise<TrainingAnswer> {
  await using store = await openStore({ ...place, poolSize: 1, migrations, log: createLog('warn'), world: realWorld });
  const promoted = (await listModelVersions(store, targetModel)).find((version) => version.isPromoted);
  const champion = promoted && (await readChampion(store, promoted));
  const seenId = champion && promoted ? findLastSampleId(promoted) : 0;
  // The last of all samples, read or not: those that are too old to be read must not stay fresh.
  const lastSampleId = await readLastSampleId(store, targetModel);
  const { table, ids } = await readTable(store, targetModel, { limit: maxRows, lastSampleId });
  const { winner, ...scores } = challengeChampion(table, champion, (row) => ids[row]! > seenId);
  const championVersion = promoted?.version;
  return { ...scores, rows: table.count, lastSampleId, championVersion, winner: winner && packModel(winner) };
}

/**
 * Reads the served version. Undefined if this program cannot read it, as after an upgrade that computes other features: then it
 * answers no calls, and the challenger is compared with the prior. Otherwise no model would ever be trained again.
 */
async function readChampion(store: Store, { name, version }: ModelVersion): Promise<LatencyModel | undefined> {
  const file = await readModelFile(store, name, version);
  try {
    return decodeModel(file);
  } catch (error) {
    if (isFailure(error)) return undefined;
    throw error;
  }
}

interface ReadSamples {
  readonly table: ObservationTable;
  readonly ids: readonly number[];
}

/** Reads the newest samples, oldest first. Samples with a time in the future count as the oldest. */
async function readTable(
  store: Store,
  targetModel: string,
  { limit, lastSampleId }: { readonly limit: number; readonly lastSampleId: number },
): Promise<ReadSamples> {
  const table = createObservationTable();
  const ids: number[] = [];
  for await (const page of readSamplePages(store, targetModel, { limit }))
    for (const { id, observation } of page) {
      // A row that is added during the read stays fresh.
      if (id > lastSampleId) continue;
      appendObservation(table, observation);
      ids.push(id);
    }
  return putAheadFirst({ table, ids }, withStoreClock(realWorld, store).nowMs() + MAX_AHEAD_MS);
}

function putAheadFirst({ table, ids }: ReadSamples, latestMs: number): ReadSamples {
  const [past, ahead]: [number[], number[]] = [[], []];
  for (const row of ids.keys()) (table.atMs[row]! > latestMs ? ahead : past).push(row);
  if (ahead.length === 0) return { table, ids };
  const rows = [...ahead, ...past];
  return { table: selectRows(table, rows), ids: rows.map((row) => ids[row]!) };
}
