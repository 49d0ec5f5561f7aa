/** Adds up the sums of the last 24 hours, two hours in each turn of the event loop: reads of SQLite block a serving thread. */
import { setImmediate as yieldToCalls } from 'node:timers/promises';
import type { PartSums, TimeRange } from './accuracy-read-store.ts';
import { mergeSums } from './accuracy-sums.ts';

const HOUR_MS = 3_600_000;
export const ACCURACY_HOURS = 24;
const HOURS_A_TURN = 2;

/** Returns one element for each model, part, target and version. `read` lists the sums of periods that begin in a range. */
export async function addUpDay(nowMs: number, read: (range: TimeRange) => Promise<PartSums[]>): Promise<PartSums[]> {
  const known = new Map<string, PartSums>();
  for (let hours = ACCURACY_HOURS; hours > 0; hours -= HOURS_A_TURN) {
    const fromMs = nowMs - hours * HOUR_MS;
    // The clock of another process may be ahead.
    const untilMs = hours > HOURS_A_TURN ? fromMs + HOURS_A_TURN * HOUR_MS : Number.MAX_SAFE_INTEGER;
    for (const part of await read({ fromMs, untilMs })) addPart(known, part);
    await yieldToCalls();
  }
  return [...known.values()];
}

function addPart(known: Map<string, PartSums>, part: PartSums): void {
  const key = JSON.stringify([part.targetModel, part.part, part.target, part.version]);
  const before = known.get(key);
  if (before !== undefined) mergeSums(part.sums, before.sums);
  known.set(key, { ...part, lastMs: Math.max(before?.lastMs ?? part.lastMs, part.lastMs) });
}
