/** Creates the registry of metrics that `/metrics` serves (Prometheus). */
import { collectDefaultMetrics, type Metric, Registry } from 'prom-client';
import { realWorld, type World } from '../world.ts';

/** One registry per program, handed to the parts that count something; served at `/metrics`. */
export type Metrics = Registry;

type Waiting = Pick<World, 'sleep'>;

/** A database that does not answer must not hold up a scrape. */
const MAX_WAIT_MS = 1000;

export function createMetrics(world: Waiting = realWorld): Metrics {
  const registry = new GuardedRegistry(world);
  collectDefaultMetrics({ register: registry });
  return registry;
}

/** A metric whose values cannot be read now keeps those of its last read, and the other metrics are served as ever. */
class GuardedRegistry extends Registry {
  readonly #world: Waiting;

  constructor(world: Waiting) {
    super();
    this.#world = world;
  }

  override registerMetric<Label extends string>(metric: Metric<Label>): void {
    guardCollect(metric as Collecting, this.#world);
    super.registerMetric(metric);
  }
}

/** prom-client reads the values of a metric with the function that its configuration has. */
interface Collecting {
  collect?: () => unknown;
}

function guardCollect(metric: Collecting, world: Waiting): void {
  const { collect } = metric;
  if (collect === undefined) return;
  let reading: Promise<void> | undefined;
  const read = async (): Promise<void> => {
    try {
      await collect.call(metric);
    } catch {
      // The last values stay.
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

async function waitBriefly(work: Promise<void>, world: Waiting): Promise<void> {
  const answered = new AbortController();
  await Promise.race([work, world.sleep(MAX_WAIT_MS, answered.signal).catch(() => {})]);
  answered.abort();
}
