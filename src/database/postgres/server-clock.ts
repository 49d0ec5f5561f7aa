/**
 * Measures how far the clock of the database's server differs from this machine's. Processes on one database compare times that
 * others wrote: if their clocks differ, one sees the other's leases as expired and its retries as due.
 */
import type { Log } from '../../telemetry/log.ts';
import type { World } from '../../world.ts';

export interface ServerClock {
  /** How many milliseconds it is ahead of this machine's clock; 0 while both agree within a second. */
  readonly aheadMs: number;
  /** Compares both clocks now, or waits for a running comparison. */
  measure(): Promise<void>;
  close(): void;
}

export interface ServerClockDependencies {
  /** Milliseconds since the epoch by the server's clock. */
  readonly askMs: () => Promise<number>;
  readonly world: Pick<World, 'nowMs' | 'monotonicMs'>;
  readonly log: Log;
}

const MEASURE_EVERY_MS = 5000;
/** An answer that took longer is too imprecise. */
const SLOW_MS = 2000;
/** Smaller differences are ignored: they would change with each measurement. */
const AGREE_MS = 1000;

export function createServerClock({ askMs, world, log }: ServerClockDependencies): ServerClock {
  let aheadMs = 0;

  const compare = async (): Promise<void> => {
    const [startMs, startMonotonicMs] = [world.nowMs(), world.monotonicMs()];
    const serverMs = await askMs();
    const tookMs = world.monotonicMs() - startMonotonicMs;
    if (tookMs > SLOW_MS) return;
    const measuredMs = Math.round(serverMs - startMs - tookMs / 2);
    const before = aheadMs;
    aheadMs = Math.abs(measuredMs) < AGREE_MS ? 0 : measuredMs;
    if (Math.abs(aheadMs - before) < AGREE_MS) return;
    if (aheadMs === 0) log.info('The clock of this machine agrees with that of the database again');
    else log.warn({ aheadMs }, 'The clock of the database differs from that of this machine, and is used instead');
  };

  let underWay: Promise<void> | undefined;
  const measure = (): Promise<void> => {
    underWay ??= compare().finally(() => {
      underWay = undefined;
    });
    return underWay;
  };

  // A server that is away is noticed and logged elsewhere.
  const timer = setInterval(() => void measure().catch(() => {}), MEASURE_EVERY_MS).unref();
  return {
    get aheadMs() {
      return aheadMs;
    },
    measure,
    close: () => clearInterval(timer),
  };
}
