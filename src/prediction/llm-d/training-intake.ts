/**
 * Stores a batch of llm-d's training rows before it answers, then learns from it. What its times measure is decided in
 * `training-row-store.ts`.
 */
import { setImmediate as yieldToCalls } from 'node:timers/promises';
import type { Store } from '../../database/store.ts';
import type { World } from '../../world.ts';
import { measureAhead } from '../observations/event-draft.ts';
import type { LearningSink } from '../observations/observation-sink.ts';
import type { Sample } from '../observations/sample-store.ts';
import { MAX_MS, MIN_OBSERVED_MS } from '../schema/milliseconds.ts';
import { toInput } from './load-input.ts';
import type { MeasuredTimes } from './measured-times.ts';
import { ROWS_A_TURN, type TrainingRow } from './read-rows.ts';
import { addSamples, isEndToEnd, takeBatch } from './training-row-store.ts';

export interface TrainingIntakeDependencies {
  readonly store: Store;
  readonly world: Pick<World, 'nowMs'>;
  readonly sink: Pick<LearningSink, 'learn'>;
  readonly measuredTimes: Pick<MeasuredTimes, 'record'>;
}

export type TakeTrainingRows = (targetModel: string, rows: readonly TrainingRow[]) => Promise<void>;

export function createTrainingIntake({
  store,
  world,
  sink,
  measuredTimes,
}: TrainingIntakeDependencies): TakeTrainingRows {
  return async (targetModel, rows) => {
    const nowMs = world.nowMs();
    const observations = await toObservations(targetModel, rows, nowMs);
    if (observations.length === 0) return;
    const ids = await store.makeIds(observations.length);
    const samples = observations.map((observation, i) => ({ id: ids[i]!, observation }));
    // Its times are end-to-end times, whatever other rows say.
    if (isEndToEnd(targetModel)) {
      await addSamples(store, samples);
      await sink.learn(observations);
      return;
    }
    const taken = await takeBatch(store, { targetModel, samples, nowMs });
    measuredTimes.record(targetModel, taken.measures);
    await sink.learn(taken.samples.map((sample) => sample.observation));
  };
}

async function toObservations(
  targetModel: string,
  rows: readonly TrainingRow[],
  nowMs: number,
): Promise<Sample['observation'][]> {
  const observations: Sample['observation'][] = [];
  // All rows move back together, so that the times between their requests stay.
  const aheadMs = rows.reduce((most, { timestamp }) => Math.max(most, measureAhead(timestamp, nowMs)), 0);
  for (const [index, row] of rows.entries()) {
    if (index > 0 && index % ROWS_A_TURN === 0) await yieldToCalls();
    observations.push(...toObservation(targetModel, row, { nowMs, aheadMs }));
  }
  return observations;
}

interface BatchTime {
  readonly nowMs: number;
  /** By how much the rows of the batch move back. */
  readonly aheadMs: number;
}

/** One observation, or none for a row that observed no time. */
export function toObservation(
  targetModel: string,
  row: TrainingRow,
  { nowMs, aheadMs }: BatchTime,
): Sample['observation'][] {
  const ttftMs = toObservedMs(row.actualTtftMs);
  const tpotMs = toObservedMs(row.actualTpotMs);
  if (ttftMs === undefined && tpotMs === undefined) return [];
  // A row that is dated too far ahead counts from its report, as one without a time.
  const atMs = row.timestamp >= 0 ? Math.max(0, Math.min(row.timestamp - aheadMs, nowMs)) : nowMs;
  return [{ targetModel, input: toInput(row), atMs, ttftMs, tpotMs }];
}

/** 0 means "not observed" in this interface. An impossible time counts as not observed too: refusing it would refuse the other rows. */
function toObservedMs(ms: number): number | undefined {
  return ms >= MIN_OBSERVED_MS && ms <= MAX_MS ? ms : undefined;
}
