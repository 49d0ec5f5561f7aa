/** Creates the registry of metrics that `/metrics` serves (Prometheus). */
import { collectDefaultMetrics, type Metric, Registry } from 'prom-client';
import { realWorld, type World } from '../world.ts';
import type { Log } from './log.ts';

/** One registry per program, handed to the parts that count something; served at `/metrics`. */
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

/** A database that does not answer must not hold up a scrape. */
const MAX_WAIT_MS = 1000;

export function createMetrics({ world = realWorld, log }: MetricsOptions = {}): Metrics {
  const registry = new GuardedRegistry({ world, log });
  collectDefaultMetrics({ register: registry });
  return registry;
}

/** A metric whose values cannot be read now keeps those of its last read, and the other metrics are served as ever. */
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

/** prom-client reads the values of a metric with the function that its configuration has. */
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
    // Scrapes of a database that does not answer share one read.
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
