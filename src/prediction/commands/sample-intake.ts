/** Stores the rows of `trivet observe` as samples, in batches; while the store is unavailable, keeps them and tries again. */
import type { CliStore } from '../../command-line/open-cli-store.ts';
import { createProgress, remark } from '../../command-line/output.ts';
import { isFailure } from '../../errors.ts';
import { insertSampleStatements } from '../observations/sample-store.ts';
import type { Observation } from '../schema/observation.ts';
import { appendObservation, createObservationTable } from '../schema/observation-table.ts';
import { warnOfMistakes } from './row-input.ts';

export interface SampleIntake {
  add(observation: Observation): Promise<void>;
  /** Returns the number of rows that were stored. */
  finish(): Promise<number>;
  /** Aborts a wait for the store. */
  [Symbol.dispose](): void;
}

export interface IntakePace {
  /** This many rows are checked for likely mistakes before any of them is stored. */
  readonly checkedRows: number;
  /** Rows are stored after this many milliseconds at the latest, checked or not. */
  readonly maxWaitMs?: number;
  /** Called when rows cannot be stored in the background. */
  readonly onFailure?: (error: Error) => void;
}

const ROWS_AT_ONCE = 500;
const RETRY_MS = 1000;

/** Checks the first rows together, and stores all rows. */
export function createSampleIntake(
  opened: CliStore,
  { checkedRows, maxWaitMs, onFailure = () => {} }: IntakePace,
): SampleIntake {
  const showProgress = createProgress(() => opened.world.monotonicMs());
  const stopping = new AbortController();
  let unchecked: Observation[] | undefined = [];
  let waiting: Observation[] = [];
  let timer: NodeJS.Timeout | undefined;
  let stored = Promise.resolve();
  let accepted = 0;

  function check(): void {
    if (unchecked !== undefined) warnOfRows(unchecked);
    unchecked = undefined;
  }

  async function save(rows: readonly Observation[]): Promise<void> {
    for (let from = 0; from < rows.length; from += ROWS_AT_ONCE) {
      const part = rows.slice(from, from + ROWS_AT_ONCE);
      await storeSamples(opened, part, stopping.signal);
      accepted += part.length;
      showProgress(`Taken: ${accepted} rows`);
    }
  }

  /** Stores the waiting rows after those that are being stored. */
  function flush(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    const rows = waiting;
    waiting = [];
    stored = stored.then(() => save(rows));
    return stored;
  }

  return {
    async add(observation) {
      await stored;
      waiting.push(observation);
      if (unchecked !== undefined && unchecked.push(observation) >= checkedRows) check();
      if (unchecked === undefined && waiting.length >= ROWS_AT_ONCE) await flush();
      else if (maxWaitMs !== undefined) timer ??= setTimeout(() => void flush().catch(onFailure), maxWaitMs).unref();
    },
    async finish() {
      check();
      await flush();
      return accepted;
    },
    [Symbol.dispose]() {
      clearTimeout(timer);
      stopping.abort();
    },
  };
}

function warnOfRows(observations: readonly Observation[]): void {
  const table = createObservationTable(Math.max(1, observations.length));
  for (const observation of observations) appendObservation(table, observation);
  warnOfMistakes(table);
}

/** Tries again with the same ids: if an attempt had an unknown outcome, a duplicate id shows that it stored the rows. */
async function storeSamples(
  { store, world }: CliStore,
  observations: readonly Observation[],
  signal: AbortSignal,
): Promise<void> {
  // A row that is dated ahead is dated now, as in a report.
  const nowMs = world.nowMs();
  const dated = observations.map((row) => ({ ...row, atMs: Math.min(row.atMs ?? nowMs, nowMs) }));
  let ids: readonly number[] | undefined;
  let [isOut, isUnknown] = [false, false];
  for (;;)
    try {
      ids ??= await store.makeIds(dated.length);
      await store.writeAll(insertSampleStatements(dated.map((observation, i) => ({ id: ids![i]!, observation }))));
      if (isOut) remark('Rows are stored again');
      return;
    } catch (error) {
      if (isUnknown && isFailure(error) && error.details.isDuplicate === true) return;
      if (!isFailure(error) || error.code !== 'unavailable') throw error;
      if (!isOut) remark(`Rows are kept, and stored as soon as that is possible: ${error.message}`);
      isOut = true;
      isUnknown ||= error.details.isUnknown === true;
      await world.sleep(RETRY_MS, signal);
    }
}
