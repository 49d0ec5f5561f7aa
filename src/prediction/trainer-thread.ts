/** Learns in a thread of its own, so that serving goes on: one order in, one answer out, then it ends. */
import { parentPort, workerData } from 'node:worker_threads';
import { lowerThreadPriority } from '../workers/lower-priority.ts';
import type { Challenge } from './challenge.ts';
import type { ObservationTable } from './observation-table.ts';
import type { PackedModel } from './publish-model.ts';

export interface TrainingOrder {
  readonly table: ObservationTable;
  /** The file of the served model. */
  readonly champion: Uint8Array | undefined;
}

export interface TrainingAnswer extends Omit<Challenge, 'winner'> {
  /** Undefined when the new model was not better. */
  readonly winner: PackedModel | undefined;
}

// Before anything else is even loaded: with one core, a refit must not make calls wait.
lowerThreadPriority();
const { challengeChampion } = await import('./challenge.ts');
const { decodeModel } = await import('./model-codec.ts');
const { packModel } = await import('./publish-model.ts');

const { table, champion } = workerData as TrainingOrder;
const { winner, ...scores } = challengeChampion(table, champion && decodeModel(champion));
const answer: TrainingAnswer = { ...scores, winner: winner && packModel(winner) };
parentPort?.postMessage(answer);
