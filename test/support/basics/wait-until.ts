/** Waiting for what another process does, or what follows an answer, where a test has no event to await. */
import { setTimeout as sleep } from 'node:timers/promises';

type Found<T> = Exclude<T, false | null | undefined>;

/** Below the time that a test may take: a wait that its test has given up would keep the process of the tests alive. */
const LIMIT_MS = 240_000;

/** Asks again and again until the answer is something. Throws after four minutes. */
export async function waitUntil<T>(find: () => T | Promise<T>, everyMs = 20): Promise<Found<T>> {
  const startedMs = performance.now();
  while (performance.now() - startedMs < LIMIT_MS) {
    const found = await find();
    if (found !== false && found !== null && found !== undefined) return found as Found<T>;
    // What is asked has no event.
    await sleep(everyMs);
  }
  throw new Error('Waited for four minutes in vain');
}
