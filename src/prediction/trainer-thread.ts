/** Learns in a thread of its own, so that serving goes on: one order in, one answer out, then it ends. */
import { parentPort, workerData } from 'node:worker_threads';
import { type Challenge, challengeChampion } from './challenge.ts';
import { decodeModel, encodeModel } from './model-codec.ts';
import type { ObservationTable } from './observation-table.ts';

export interface TrainingOrder {
  readonly table: ObservationTable;
  /** The file of the served model. */
  readonly champion: Uint8Array | undefined;
}

export interface TrainingAnswer extends Omit<Challenge, 'winner'> {
  /** The file of the new model; undefined when it was not better. */
  readonly winner: Uint8Array | undefined;
}

const { table, champion } = workerData as TrainingOrder;
const { winner, ...scores } = challengeChampion(table, champion && decodeModel(champion));
const answer: TrainingAnswer = { ...scores, winner: winner && encodeModel(winner) };
parentPort?.postMessage(answer);
