/** A server under load measures itself from the message `begin` to the message `end`, and is idle otherwise. */
import { existsSync, readFileSync } from 'node:fs';
import { PerformanceObserver, performance } from 'node:perf_hooks';

export interface Readings {
  readonly cpuMicros: number;
  /** The longest busy period of the answering thread, in its processor time (kernel ticks), which other programs do not change. */
  readonly longestTurnMs: number;
  /** How long that thread was ready to run and had no core; 0 where the kernel does not report it. */
  readonly waitedMs: number;
  /** How long the garbage collector made it wait, in total and at most at once. */
  readonly collectedMs: number;
  readonly longestCollectionMs: number;
  /** Share of the time in which its event loop was not idle. */
  readonly loopShare: number;
}

/** Times of the main thread of this process: nanoseconds on a core, nanoseconds of waiting for one, time slices. */
const SCHEDULE = '/proc/self/schedstat';

/** Answers the process that started this one; `others` are messages beside `begin` and `end`. */
export function serveReadings(port: number, others: (message: unknown) => unknown = () => undefined): void {
  let end: (() => Readings) | undefined;
  process.on('message', (message) => {
    if (message === 'end') process.send?.(end?.());
    else if (message === 'begin') {
      end = startReading();
      process.send?.('begun');
    } else process.send?.(others(message) ?? 'done');
  });
  process.once('disconnect', () => process.exit());
  process.send?.({ port });
}

function startReading(): () => Readings {
  let collectedMs = 0;
  let longestCollectionMs = 0;
  const collections = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) {
      collectedMs += duration;
      longestCollectionMs = Math.max(longestCollectionMs, duration);
    }
  });
  collections.observe({ entryTypes: ['gc'] });
  const stopTurns = watchTurns();
  const cpuMicros = readCpuMicros();
  const waitedMs = readWaitedMs();
  const loop = performance.eventLoopUtilization();
  return () => {
    collections.disconnect();
    return {
      cpuMicros: readCpuMicros() - cpuMicros,
      waitedMs: readWaitedMs() - waitedMs,
      longestTurnMs: stopTurns(),
      collectedMs,
      longestCollectionMs,
      loopShare: performance.eventLoopUtilization(loop).utilization,
    };
  };
}

function watchTurns(): () => number {
  let longestTurnMs = 0;
  let turnStartedMicros = readThreadMicros();
  const timer = setInterval(() => {
    const nowMicros = readThreadMicros();
    longestTurnMs = Math.max(longestTurnMs, (nowMicros - turnStartedMicros) / 1000);
    turnStartedMicros = nowMicros;
  }, 1);
  return () => {
    clearInterval(timer);
    return longestTurnMs;
  };
}

function readThreadMicros(): number {
  const { user, system } = process.threadCpuUsage();
  return user + system;
}

function readCpuMicros(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

function readWaitedMs(): number {
  if (!existsSync(SCHEDULE)) return 0;
  return Number(readFileSync(SCHEDULE, 'utf8').split(' ')[1]) / 1e6;
}
