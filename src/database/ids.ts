/**
 * Defines row ids: integers below 2^53 that rise with time and that no two processes ever make twice.
 * Why they have this form: [decision](../../docs/decisions/0009-ids.md).
 *
 * An id is 41 bits of milliseconds, 7 bits of a stripe, and 5 bits that count. A process reserves a range of ids in the
 * database: one stripe over a span of milliseconds. Ranges never overlap, and a process makes each id of its range once. So a
 * wrong clock makes ids follow the time badly, but never makes two equal ones.
 */

/** 2025-01-01: 41 bits of milliseconds from here last until 2094. */
export const ID_EPOCH_MS = 1_735_689_600_000;
export const ID_END_MS = ID_EPOCH_MS + 2 ** 41;
export const IDS_PER_MS = 4096;
export const STRIPE_COUNT = 128;
export const IDS_PER_STRIPE_MS = IDS_PER_MS / STRIPE_COUNT;

/** A number smaller than every id made at that time or later, and larger than all earlier ids. */
export function idAtMs(nowMs: number): number {
  return (nowMs - ID_EPOCH_MS) * IDS_PER_MS;
}

/** The ids of one stripe from one millisecond up to, not including, another. */
export interface IdRange {
  readonly stripe: number;
  readonly fromMs: number;
  readonly untilMs: number;
}

/** Consecutive ids. */
export interface IdRun {
  readonly firstId: number;
  readonly count: number;
}

/** Makes the ids of a range in rising order, each once. */
export interface IdMaker {
  /** Returns up to `count` ids of that time, or later ones if those are used up or the clock went back; undefined at the range's end. */
  makeRun(nowMs: number, count: number): IdRun | undefined;
  /** The first millisecond for which no id was made. */
  readonly unusedFromMs: number;
}

export function createIdMaker({ stripe, fromMs, untilMs }: IdRange): IdMaker {
  let atMs = fromMs;
  let used = 0;
  return {
    makeRun: (nowMs, count) => {
      if (nowMs > atMs || used === IDS_PER_STRIPE_MS) {
        atMs = Math.max(nowMs, atMs + 1);
        used = 0;
      }
      if (atMs >= untilMs) return undefined;
      const run = {
        firstId: idAtMs(atMs) + stripe * IDS_PER_STRIPE_MS + used,
        count: Math.min(count, IDS_PER_STRIPE_MS - used),
      };
      used += run.count;
      return run;
    },
    get unusedFromMs() {
      return used === 0 ? atMs : atMs + 1;
    },
  };
}
