/** Creates the registry of metrics that `/metrics` serves (Prometheus). */
import { collectDefaultMetrics, type Metric, Registry } from 'prom-client';
import { realWorld, type World } from '../world.ts';
import type { Log } from './log.ts';

/** The registry of the program, which is passed to all parts that count; served at `/metrics`. */
export type Metrics = Registry;

export interface MetricsOptions {
  readonly world?: Pick<World, 'sleep'>;
  /** Metrics that cannot be read are logged here. */
  readonly log?: Pick<Log, 'warn' | 'info'>;
}

interface Guard {
  readonly world: Pick<World, 'sleep'>;
  readonly log: MetricsOptions['log'];
}

/** How long a scrape waits for a metric: a database that does not answer must not delay it. */
const MAX_WAIT_MS = 1000;

export function createMetrics({ world = realWorld, log }: MetricsOptions = {}): Metrics {
  const registry = new GuardedRegistry({ world, log });
  collectDefaultMetrics({ register: registry });
  return registry;
}

/** A metric whose values cannot be read keeps those of its last read, and the other metrics are served as usual. */
class GuardedRegistry extends Registry {
  readonly #guard: Guard;

  constructor(guard: Guard) {
    super();
    this.#guard = guard;
  }

  override registerMetric<Label extends string>(metric: Metric<Label>): void {
    guardCollect(metric as Collecting, this.#guard);
    super.registerMetric(metric);
  }
}

/** prom-client reads the values of a metric with the function `collect` of its configuration. */
interface Collecting {
  readonly name?: string;
  collect?: () => unknown;
}

function guardCollect(metric: Collecting, { world, log }: Guard): void {
  const { name, collect } = metric;
  if (collect === undefined) return;
  let reading: Promise<void> | undefined;
  let isFailing = false;
  const read = async (): Promise<void> => {
    try {
      await collect.call(metric);
      if (isFailing) log?.info({ metric: name }, 'A metric can be read again');
      isFailing = false;
    } catch (err) {
      if (!isFailing) log?.warn({ err, metric: name }, 'Cannot read a metric: it keeps its last values');
      isFailing = true;
    }
  };
  metric.collect = () => {
    // Concurrent scrapes share one read of a database that does not answer.
    reading ??= read().finally(() => {
      reading = undefined;
    });
    return waitBriefly(reading, world);
  };
}

async function waitBriefly(work: Promise<void>, world: Guard['world']): Promise<void> {
  const answered = new AbortController();
  await Promise.race([work, world.sleep(MAX_WAIT_MS, answered.signal).catch(() => {})]);
  answered.abort();
}
