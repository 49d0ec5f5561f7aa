/** Waiting for what another process does, or what follows an answer, where a test has no event to await. */
import { setTimeout as sleep } from 'node:timers/promises';

type Found<T> = Exclude<T, false | null | undefined>;

/** Asks again and again until the answer is something; the timeout of the test ends the wait for what never comes. */
export async function waitUntil<T>(find: () => T | Promise<T>, everyMs = 20): Promise<Found<T>> {
  for (;;) {
    const found = await find();
    if (found !== false && found !== null && found !== undefined) return found as Found<T>;
    await sleep(everyMs);
  }
}
