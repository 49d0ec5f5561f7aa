/** Asks every server of the list for its metrics at an interval, and keeps what it last said. */
import { Counter, Gauge } from 'prom-client';
import { describeError, isFailure } from '../../errors.ts';
import { createLabelLimit } from '../../telemetry/label-limit.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { createRoundWorker } from '../../workers/round-worker.ts';
import type { Worker } from '../../workers/worker.ts';
import type { World } from '../../world.ts';
import type { ServerScraper } from './scrape-server.ts';
import type { ScrapeTarget, TargetList } from './scrape-targets.ts';
import type { ScrapedLoads, ScrapedServer } from './scraped-loads.ts';

export interface ScrapeWorkerDependencies {
  readonly list: TargetList;
  readonly loads: ScrapedLoads;
  readonly scraper: ServerScraper;
  readonly intervalMs: number;
  readonly world: World;
  readonly log: Log;
  readonly metrics: Metrics;
}

const MAX_AT_ONCE = 32;
/** Every series is written at each scrape of our own metrics. */
const MAX_LABELS = 256;

export interface ScrapeWorker extends Worker {
  /** Throws `invalid` when the list cannot be read; call before the start. */
  readonly readList: () => Promise<void>;
  /** One scrape of every server. */
  scrapeAll(signal: AbortSignal): Promise<void>;
}

export function createScrapeWorker(dependencies: ScrapeWorkerDependencies): ScrapeWorker {
  const { list, loads, scraper, world, log } = dependencies;
  const { scrapeOne, forgetFailures } = createServerScraper(dependencies);
  let targets: readonly ScrapeTarget[] = [];

  async function readList(): Promise<void> {
    const next = await list.read();
    if (next === targets) return;
    targets = next;
    forgetFailures();
    loads.replaceServers(next.map(({ names }) => names));
    log.info({ servers: next.length }, 'Read the list of servers to scrape');
  }

  async function scrapeAll(signal: AbortSignal): Promise<void> {
    await readList();
    const { servers } = loads;
    let next = 0;
    const work = async (): Promise<void> => {
      for (let i = next++; i < targets.length && !signal.aborted; i = next++) await scrapeOne(targets[i]!, servers[i]!);
    };
    await Promise.all(Array.from({ length: Math.min(MAX_AT_ONCE, targets.length) }, work));
  }

  const worker = createRoundWorker({ name: 'scraper', restMs: dependencies.intervalMs, world, log, round: scrapeAll });
  return {
    ...worker,
    readList,
    scrapeAll,
    async stop() {
      await scraper.close();
      await worker.stop();
    },
  };
}

/** Scrapes one server; a failure is logged when it begins and when it is over. */
function createServerScraper(dependencies: ScrapeWorkerDependencies) {
  const { scraper, world, log } = dependencies;
  const scrapes = createScrapeMetrics(dependencies);
  const failing = new Set<ScrapedServer>();

  async function scrapeOne(target: ScrapeTarget, server: ScrapedServer): Promise<void> {
    const startedMs = world.monotonicMs();
    try {
      server.load = await scraper.scrape(target);
      server.atMs = startedMs;
      server.failure = undefined;
      scrapes.inc({ outcome: 'ok' });
      if (failing.delete(server)) log.info({ server: server.names[0] }, 'Scrapes a server again');
    } catch (error) {
      scrapes.inc({ outcome: 'failed' });
      server.failure = { reason: describeError(error), isAnswered: isFailure(error) };
      if (failing.has(server)) return;
      failing.add(server);
      log.warn({ server: server.names[0], reason: describeError(error) }, 'Cannot scrape a server');
    }
  }

  return { scrapeOne, forgetFailures: () => failing.clear() };
}

function createScrapeMetrics({ loads, metrics, world }: ScrapeWorkerDependencies): Counter<'outcome'> {
  const labelOf = createLabelLimit(MAX_LABELS);
  new Gauge({
    name: 'trivet_prediction_scrape_age_seconds',
    help: 'Age of the numbers that were last scraped from a server; infinite before the first scrape.',
    labelNames: ['server'],
    registers: [metrics],
    collect() {
      this.reset();
      for (const { names, atMs } of loads.servers)
        this.set({ server: labelOf(names[0]!) }, (world.monotonicMs() - atMs) / 1000);
    },
  });
  return new Counter({
    name: 'trivet_prediction_scrapes_total',
    help: 'Requests for the metrics of servers, by outcome.',
    labelNames: ['outcome'],
    registers: [metrics],
  });
}
