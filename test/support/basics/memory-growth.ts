/** Measures the memory that a test process takes during some work, and keeps. */
import { writeFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export const MEBIBYTE = 1_048_576;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/**
 * Returns by how many MiB the memory of the process grew at most meanwhile. On Linux what the process took before does not count;
 * elsewhere only what exceeds that is seen.
 */
export async function measureGrowth(attack: () => Promise<void>): Promise<number> {
  collectGarbage();
  // The largest memory so far becomes that of now: proc_pid_clear_refs(5).
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

/** Opens what `open` opens twice, and returns the bytes of the heap that the second one keeps, with both. */
export async function measureHeapOf<Opened>(open: () => Promise<Opened>): Promise<readonly [number, ...Opened[]]> {
  const first = await open();
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  const second = await open();
  collectGarbage();
  return [process.memoryUsage().heapUsed - before, first, second];
}
