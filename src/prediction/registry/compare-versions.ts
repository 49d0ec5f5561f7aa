/**
 * Compares two versions on the same newest samples, without learning from later reports. So the difference is that of the versions,
 * and not that of the times in which they were served.
 */
import { setImmediate as yieldToCalls } from 'node:timers/promises';
import type { Store } from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import { type Answer, type Answers, measureAccuracy } from '../evaluation/accuracy.ts';
import { bootstrapMean } from '../evaluation/bootstrap.ts';
import { createRowAnswerer } from '../evaluation/offline-answers.ts';
import { decodeModel } from '../model/model-codec.ts';
import { readSamplePages } from '../observations/sample-store.ts';
import { formatModelId } from '../schema/model-name.ts';
import {
  appendObservation,
  createObservationTable,
  type ObservationTable,
  PREDICTION_TARGETS,
  type PredictionTarget,
} from '../schema/observation-table.ts';
import { listModelVersions, type ModelVersion, readModelFile } from './model-store.ts';
import { findLastSampleId } from './publish-model.ts';

const MAX_ROWS = 2000;
/** Calls are answered between two parts of the rows. */
const ROWS_A_TURN = 250;
/** With fewer rows from which neither version has learned, all newest rows are compared. */
const MIN_UNSEEN_ROWS = 100;

export interface ComparedScores {
  readonly mape: number;
  readonly bias: number;
  readonly p90Coverage: number;
}

export interface TargetComparison {
  readonly target: PredictionTarget;
  readonly rows: number;
  readonly version: ComparedScores;
  readonly other: ComparedScores;
  /** MAPE of the version minus that of the other, in percentage points: below 0 if the version is better. */
  readonly difference: Difference;
}

export interface Difference {
  readonly mean: number;
  /** `low` to `high` is the 90 % interval of a circular block bootstrap of the paired differences. */
  readonly low: number;
  readonly high: number;
  /** `unclear` if the interval contains 0. */
  readonly verdict: 'better' | 'worse' | 'unclear';
}

export interface VersionComparison {
  readonly id: string;
  readonly otherId: string;
  /** The samples that both predicted, and the times of the oldest and the newest. */
  readonly rows: number;
  readonly fromMs: number | null;
  readonly toMs: number | null;
  /** From how many of them each version may have learned. With any, the comparison flatters that version. */
  readonly learnedByVersion: number;
  readonly learnedByOther: number;
  /** Empty without samples. */
  readonly targets: TargetComparison[];
}

export interface ComparedVersions {
  readonly name: string;
  readonly version: number;
  readonly other: number;
  /** Samples dated after this time, by a clock that is ahead, are left out. */
  readonly nowMs: number;
}

/** Throws `not_found` for an unknown version. */
export async function compareVersions(
  store: Store,
  { name, version, other, nowMs }: ComparedVersions,
): Promise<VersionComparison> {
  const versions = await listModelVersions(store, name);
  const [one, two] = [findVersion(versions, name, version), findVersion(versions, name, other)];
  const samples = await readNewestSamples(store, name, nowMs);
  const seen = [findLastSampleId(one), findLastSampleId(two)] as const;
  const rows = chooseRows(samples.ids, Math.max(...seen));
  const [ofVersion, ofOther] = [
    await answerAll(store, one, samples.table, rows),
    await answerAll(store, two, samples.table, rows),
  ];
  const countLearned = (last: number): number => rows.filter((row) => samples.ids[row]! <= last).length;
  return {
    id: formatModelId(name, version),
    otherId: formatModelId(name, other),
    rows: rows.length,
    fromMs: rows.length === 0 ? null : samples.table.atMs[rows[0]!]!,
    toMs: rows.length === 0 ? null : samples.table.atMs[rows.at(-1)!]!,
    learnedByVersion: countLearned(seen[0]),
    learnedByOther: countLearned(seen[1]),
    targets: PREDICTION_TARGETS.flatMap((target) => compareTarget(target, ofVersion[target], ofOther[target])),
  };
}

function findVersion(versions: readonly ModelVersion[], name: string, version: number): ModelVersion {
  const found = versions.find((candidate) => candidate.version === version);
  if (found === undefined) throw new Failure('not_found', `Cannot find the model "${formatModelId(name, version)}"`);
  return found;
}

interface NewestSamples {
  readonly table: ObservationTable;
  readonly ids: readonly number[];
}

/** Reads the newest samples; the oldest of them comes first. */
async function readNewestSamples(store: Store, name: string, nowMs: number): Promise<NewestSamples> {
  const table = createObservationTable();
  const ids: number[] = [];
  for await (const page of readSamplePages(store, name, { limit: MAX_ROWS, nowMs }))
    for (const { id, observation } of page) {
      appendObservation(table, observation);
      ids.push(id);
    }
  return { table, ids };
}

/** Returns the samples from which neither version has learned, or all if those are too few. */
function chooseRows(ids: readonly number[], lastLearned: number): number[] {
  const all = [...ids.keys()];
  const unseen = all.filter((row) => ids[row]! > lastLearned);
  return unseen.length >= MIN_UNSEEN_ROWS ? unseen : all;
}

async function answerAll(
  store: Store,
  { name, version }: ModelVersion,
  table: ObservationTable,
  rows: readonly number[],
): Promise<Answers> {
  const answers: Answers = { ttft: [], tpot: [] };
  if (rows.length === 0) return answers;
  const answerer = createRowAnswerer(decodeModel(await readModelFile(store, name, version)), ROWS_A_TURN);
  for (let from = 0; from < rows.length; from += ROWS_A_TURN) {
    answerer.answer(table, rows.slice(from, from + ROWS_A_TURN), answers);
    await yieldToCalls();
  }
  return answers;
}

function compareTarget(target: PredictionTarget, one: readonly Answer[], two: readonly Answer[]): TargetComparison[] {
  const [version, other] = [measureAccuracy(one), measureAccuracy(two)];
  if (version === undefined || other === undefined) return [];
  const sizesByRow = new Map(two.map((answer) => [answer.row, sizeOf(answer)]));
  // The bootstrap draws blocks of neighbours in time.
  const ordered = one.toSorted((a, b) => a.row - b.row);
  const differences = ordered.map((answer) => sizeOf(answer) - sizesByRow.get(answer.row)!);
  const { mean, low, high } = bootstrapMean(differences);
  const verdict = high < 0 ? 'better' : low > 0 ? 'worse' : 'unclear';
  return [{ target, rows: one.length, version, other, difference: { mean, low, high, verdict } }];
}

function sizeOf({ predictedMs, observedMs }: Answer): number {
  return (100 * Math.abs(predictedMs - observedMs)) / observedMs;
}
