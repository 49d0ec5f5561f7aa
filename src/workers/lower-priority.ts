import { setPriority } from 'node:os';

/** Of 19: whoever answers goes first. Not the least, or a thread that holds a lock of the process could wait for ever with it. */
const NICENESS = 15;

/**
 * Lets every other thread go before the calling one. Linux keeps the niceness of each thread; elsewhere it belongs to the
 * whole process, which would then slow down what it should protect, so nothing is done.
 */
export function lowerThreadPriority(): void {
  if (process.platform === 'linux') setPriority(0, NICENESS);
}
