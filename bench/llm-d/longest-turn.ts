/**
 * Loaded into a program before it starts: on SIGUSR2 it writes the longest turn of its event loop since the last SIGUSR2
 * to standard error. A timer of a millisecond measures it, so it is right to a millisecond, pauses of the garbage
 * collector and of the machine included.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

const RESOLUTION_MS = 1;

if (isMainThread) {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  process.on('SIGUSR2', () => {
    const longestMs = Math.max(0, delay.max / 1e6 - RESOLUTION_MS);
    process.stderr.write(`longest turn ${longestMs.toFixed(1)} ms\n`);
    delay.reset();
  });
}
