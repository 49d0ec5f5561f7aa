/**
 * Adds up the newest observed times of each pod type of a model: whole five-minute periods until they hold at least 300 times. It
 * reads few rows in each turn of the event loop.
 */
import { setImmediate as yieldToCalls } from 'node:timers/promises';
import type { Store } from '../../database/store.ts';
import type { World } from '../../world.ts';
import { listPodTypeSumsBetween, type PartSums } from './accuracy-read-store.ts';
import { SUMS_MINUTES, WRITTEN_UNTIL_MS } from './accuracy-recorder.ts';
import { countObservations, createSums, mergeSums } from './accuracy-sums.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const PERIOD_MS = SUMS_MINUTES * MINUTE_MS;
/** Whole periods are summed, the newest first, until they have this many times. */
export const ENOUGH_TIMES = 300;
/** The most sums: callers may send any model and pod type, and each target of a pod type of a model has five series. */
const MAX_SERIES = 256;
/** How often the periods are read again that no process writes any more. */
const PAST_READ_MS = 10 * MINUTE_MS;
/** How many known periods are added in one turn of the event loop: many series of few times have tens of thousands. */
const ADDED_AT_ONCE = 500;

/** Reads the store at each call. */
export type ReadNewestTimes = () => Promise<readonly PartSums[]>;

export function createNewestTimesReader(store: Store, world: Pick<World, 'nowMs'>): ReadNewestTimes {
  let past: { readonly readAtMs: number; readonly untilMs: number; readonly periods: readonly PartSums[] } | undefined;

  async function readPast(nowMs: number) {
    if (past !== undefined && Math.abs(nowMs - past.readAtMs) < PAST_READ_MS) return past;
    const untilMs = nowMs - WRITTEN_UNTIL_MS;
    const needed = createNeededPeriods();
    for await (const page of readPages(store, { fromMs: nowMs - DAY_MS, newestMs: untilMs - PERIOD_MS, untilMs }))
      needed.add(page);
    past = { readAtMs: nowMs, untilMs, periods: needed.periods };
    return past;
  }

  return async () => {
    const nowMs = world.nowMs();
    const { untilMs: fromMs, periods } = await readPast(nowMs);
    const needed = createNeededPeriods();
    // The clock of another process may be ahead.
    const untilMs = Number.MAX_SAFE_INTEGER;
    for await (const page of readPages(store, { fromMs, newestMs: nowMs - PERIOD_MS, untilMs })) needed.add(page);
    for (let from = 0; from < periods.length; from += ADDED_AT_ONCE) {
      needed.add(periods.slice(from, from + ADDED_AT_ONCE));
      await yieldToCalls();
    }
    return needed.sums();
  };
}

interface PagesRange {
  readonly fromMs: number;
  /** The first page begins here. */
  readonly newestMs: number;
  readonly untilMs: number;
}

/** A page covers more time where there are few rows. */
const FEW_ROWS = 125;
const MANY_ROWS = 250;
const MAX_ROWS = 1000;
const MAX_PAGE_MS = 12 * PERIOD_MS;

/** Reads the newest page first. Reads of SQLite are synchronous, so it lets calls through between two pages. */
async function* readPages(store: Store, { fromMs, newestMs, untilMs }: PagesRange): AsyncGenerator<PartSums[]> {
  let lengthMs = PERIOD_MS;
  let [startMs, endMs] = [Math.max(fromMs, newestMs), untilMs];
  while (endMs > fromMs) {
    const page = await listPodTypeSumsBetween(store, { fromMs: startMs, untilMs: endMs, limit: MAX_ROWS });
    await yieldToCalls();
    if (page.length < MAX_ROWS || lengthMs === PERIOD_MS) {
      yield page;
      endMs = startMs;
    }
    lengthMs = choosePageLength(lengthMs, page.length);
    startMs = Math.max(fromMs, endMs - lengthMs);
  }
}

function choosePageLength(lengthMs: number, rows: number): number {
  if (rows < FEW_ROWS) return Math.min(MAX_PAGE_MS, 2 * lengthMs);
  return rows > MANY_ROWS ? Math.max(PERIOD_MS, lengthMs / 2) : lengthMs;
}

/** Takes the periods of each series, the newest first, until they have enough times. */
function createNeededPeriods() {
  const sums = new Map<string, PartSums>();
  const periods: PartSums[] = [];
  return {
    periods,
    add(newer: readonly PartSums[]): void {
      for (const period of newer) {
        const key = JSON.stringify([period.targetModel, period.part, period.target]);
        const known = sums.get(key);
        if (known === undefined && sums.size === MAX_SERIES) continue;
        const sum = known ?? { ...period, sums: createSums() };
        sums.set(key, sum);
        if (countObservations(sum.sums) >= ENOUGH_TIMES) continue;
        mergeSums(sum.sums, period.sums);
        periods.push(period);
      }
    },
    sums: (): readonly PartSums[] => [...sums.values()],
  };
}
