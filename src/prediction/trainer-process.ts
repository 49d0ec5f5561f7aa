/** Learns in a process of its own: reads the samples, holds a new model against the served one, and answers with the winner. */
import { migrations } from '../database/migrations/list.ts';
import { openStore, type StoreOptions } from '../database/open-store.ts';
import type { Store } from '../database/store.ts';
import { createLog } from '../telemetry/log.ts';
import { answerOrders } from '../workers/background-process.ts';
import { realWorld } from '../world.ts';
import { type Challenge, challengeChampion } from './challenge.ts';
import { decodeModel } from './model-codec.ts';
import { listPromotedModels, readModelFile } from './model-store.ts';
import { appendObservation, createObservationTable, type ObservationTable } from './observation-table.ts';
import { type PackedModel, packModel } from './publish-model.ts';
import { readSamplePages } from './sample-store.ts';

export interface TrainingOrder {
  readonly place: Pick<StoreOptions, 'dataDir' | 'databaseUrl'>;
  readonly targetModel: string;
}

export interface TrainingAnswer extends Omit<Challenge, 'winner'> {
  readonly rows: number;
  /** Undefined when the new model was not better. */
  readonly winner: PackedModel | undefined;
}

const MAX_ROWS = 50_000;

async function train({ place, targetModel }: TrainingOrder): Promise<TrainingAnswer> {
  await using store = await openStore({ ...place, poolSize: 1, migrations, log: createLog('warn'), world: realWorld });
  const table = await readTable(store, targetModel);
  const promoted = (await listPromotedModels(store)).find((model) => model.name === targetModel);
  const champion = promoted && (await readModelFile(store, targetModel, promoted.version));
  const { winner, ...scores } = challengeChampion(table, champion && decodeModel(champion));
  return { ...scores, rows: table.count, winner: winner && packModel(winner) };
}

/** The newest samples, oldest first. */
async function readTable(store: Store, targetModel: string): Promise<ObservationTable> {
  const table = createObservationTable();
  for await (const page of readSamplePages(store, targetModel, MAX_ROWS))
    for (const { observation } of page) appendObservation(table, observation);
  return table;
}

answerOrders(train);
