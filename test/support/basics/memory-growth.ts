/** Measures the memory that a test process takes during some work, and the memory that it keeps. */
import { writeFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export const MEBIBYTE = 1_048_576;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/**
 * Returns the maximum growth of the process memory during the work, in MiB. On Linux the earlier peak does not count; elsewhere only
 * growth above the earlier peak is seen.
 */
export async function measureGrowth(attack: () => Promise<void>): Promise<number> {
  collectGarbage();
  // Resets the peak to the current memory: proc_pid_clear_refs(5).
  if (process.platform === 'linux') writeFileSync('/proc/self/clear_refs', '5');
  const before = process.resourceUsage().maxRSS;
  await attack();
  return (process.resourceUsage().maxRSS - before) / 1024;
}

/** Returns MiB without garbage: the second collection waits for what the first frees in another thread. */
export async function measureArrayBuffers(): Promise<number> {
  for (let round = 0; round < 2; round++) {
    collectGarbage();
    await setImmediate();
  }
  return process.memoryUsage().arrayBuffers / MEBIBYTE;
}

/** Calls `open` twice; returns both results, and the bytes of the heap that the second one keeps. */
export async function measureHeapOf<Opened>(open: () => Promise<Opened>): Promise<readonly [number, ...Opened[]]> {
  const first = await open();
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  const second = await open();
  collectGarbage();
  return [process.memoryUsage().heapUsed - before, first, second];
}
