/**
 * Loaded into a program before it starts: on SIGUSR2 it writes the longest turn of its event loop since the last SIGUSR2
 * to standard error, by the clock and by the processor time of its thread. The clock includes time in which other programs
 * ran. A timer of a millisecond measures both, so they are accurate to about a millisecond; garbage collections count.
 */
import { isMainThread } from 'node:worker_threads';

const RESOLUTION_MS = 1;

function readCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

function watchTurns(): void {
  let longest = { clockMs: 0, cpuMs: 0 };
  let last = { clockMs: performance.now(), cpuMs: readCpuMs() };
  setInterval(() => {
    const now = { clockMs: performance.now(), cpuMs: readCpuMs() };
    longest = {
      clockMs: Math.max(longest.clockMs, now.clockMs - last.clockMs - RESOLUTION_MS),
      cpuMs: Math.max(longest.cpuMs, now.cpuMs - last.cpuMs),
    };
    last = now;
  }, RESOLUTION_MS).unref();
  process.on('SIGUSR2', () => {
    process.stderr.write(
      `longest turn ${longest.clockMs.toFixed(1)} ms, ${longest.cpuMs.toFixed(1)} ms of processor\n`,
    );
    longest = { clockMs: 0, cpuMs: 0 };
  });
}

if (isMainThread) watchTurns();
