/** Repeats work after each delay while its error is transient. */
import type { World } from '../../world.ts';

/** Does the work again after each delay while its error is transient; the last error is thrown. */
export async function retryWhile<Result>(
  isTransient: (error: unknown) => boolean,
  delaysMs: Iterable<number>,
  world: World,
  work: () => Promise<Result>,
): Promise<Result> {
  for (const delayMs of delaysMs) {
    try {
      return await work();
    } catch (error) {
      if (!isTransient(error)) throw error;
      await world.sleep(delayMs);
    }
  }
  return await work();
}
