/**
 * Stores a batch of llm-d's training rows before it answers, then learns from it. `training-row-store.ts` decides what its times
 * measure.
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
    // The name of this target model shows that its times are end-to-end.
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
  // If rows are dated ahead, all move back by the same time, which keeps the times between their requests.
  const aheadMs = rows.reduce((most, { timestamp }) => Math.max(most, measureAhead(timestamp, nowMs)), 0);
  for (const [index, row] of rows.entries()) {
    if (index > 0 && index % ROWS_A_TURN === 0) await yieldToCalls();
    observations.push(...toObservation(targetModel, row, { nowMs, aheadMs }));
  }
  return observations;
}

interface BatchTime {
  readonly nowMs: number;
  /** The rows of the batch move back by this many milliseconds. */
  readonly aheadMs: number;
}

/** Returns one observation; none for a row without an observed time. */
export function toObservation(
  targetModel: string,
  row: TrainingRow,
  { nowMs, aheadMs }: BatchTime,
): Sample['observation'][] {
  const ttftMs = toObservedMs(row.actualTtftMs);
  const tpotMs = toObservedMs(row.actualTpotMs);
  if (ttftMs === undefined && tpotMs === undefined) return [];
  // A row that is dated too far ahead is dated at its report, like a row without a time.
  const atMs = row.timestamp >= 0 ? Math.max(0, Math.min(row.timestamp - aheadMs, nowMs)) : nowMs;
  return [{ targetModel, input: toInput(row), atMs, ttftMs, tpotMs }];
}

/** 0 means "not observed" in this interface. An impossible time counts as not observed too: a refusal would hit the whole batch. */
function toObservedMs(ms: number): number | undefined {
  return ms >= MIN_OBSERVED_MS && ms <= MAX_MS ? ms : undefined;
}
