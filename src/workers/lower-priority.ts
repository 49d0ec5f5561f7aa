import { setPriority } from 'node:os';

/** Of 19: whoever answers goes first, and an idle core is used fully all the same. */
const NICENESS = 15;

/**
 * Lets every other thread go before the calling one. Linux keeps the niceness of each thread; elsewhere it belongs to the
 * whole process, which would then slow down what it should protect, so nothing is done.
 */
export function lowerThreadPriority(): void {
  if (process.platform === 'linux') setPriority(0, NICENESS);
}
