/** Polls for effects in another process, or after an answer, where a test has no event to await. */
import { setTimeout as sleep } from 'node:timers/promises';

type Found<T> = Exclude<T, false | null | undefined>;

/** Shorter than the timeout of a test: a wait that outlives its test would keep the test process alive. */
const LIMIT_MS = 240_000;

/** Calls a function repeatedly until its result is not false, null or undefined. Throws after four minutes. */
export async function waitUntil<T>(find: () => T | Promise<T>, everyMs = 20): Promise<Found<T>> {
  const startedMs = performance.now();
  while (performance.now() - startedMs < LIMIT_MS) {
    const found = await find();
    if (found !== false && found !== null && found !== undefined) return found as Found<T>;
    // The condition has no event to await.
    await sleep(everyMs);
  }
  throw new Error('Waited for four minutes in vain');
}
