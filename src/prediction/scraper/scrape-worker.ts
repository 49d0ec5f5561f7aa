/** Runs the loop that scrapes every server of the list. */
import { Counter, Gauge } from 'prom-client';
import { describeError, isFailure } from '../../errors.ts';
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
/** A server, and the target with its URL. */
type Listed = readonly [target: ScrapeTarget, server: ScrapedServer];
/** A limit, because every series is written at each scrape of our own metrics. */
const MAX_SERIES = 256;

export interface ScrapeWorker extends Worker {
  /** Throws `invalid` when the list cannot be read; call before the start. */
  readonly readList: () => Promise<void>;
  /** Scrapes every server once, also those that failed last. */
  scrapeAll(signal: AbortSignal): Promise<void>;
}

export function createScrapeWorker(dependencies: ScrapeWorkerDependencies): ScrapeWorker {
  const { list, loads, scraper, world, log } = dependencies;
  const { scrapeOne, forgetFailures } = createServerScraper(dependencies);
  let targets: readonly ScrapeTarget[] = [];
  /** The scrapes under way of servers that failed last. */
  let retries: Promise<void> | undefined;

  async function readList(): Promise<void> {
    const next = await list.read();
    if (next === targets) return;
    targets = next;
    forgetFailures();
    loads.replaceServers(next.map(({ names }) => names));
    log.info({ servers: next.length }, 'Read the list of servers to scrape');
  }

  /** Writes the result to the present entry of the target, because the list may have changed during the scrape. */
  async function scrapeListed([target, server]: Listed): Promise<void> {
    await scrapeOne(target, server);
    if (loads.servers.includes(server)) return;
    const at = targets.findIndex(({ url, names }) => url?.href === target.url?.href && names[0] === target.names[0]);
    const listed = loads.servers[at];
    const { load, atMs, failure } = server;
    if (listed !== undefined && listed.atMs <= atMs) Object.assign(listed, { load, atMs, failure });
  }

  async function scrapeEach(listed: readonly Listed[], signal: AbortSignal): Promise<void> {
    let next = 0;
    const work = async (): Promise<void> => {
      for (let i = next++; i < listed.length && !signal.aborted; i = next++) await scrapeListed(listed[i]!);
    };
    await Promise.all(Array.from({ length: Math.min(MAX_AT_ONCE, listed.length) }, work));
  }

  /** Does not wait for servers that failed last: many that hang would delay the others until their numbers are too old. */
  async function scrapeRound(signal: AbortSignal): Promise<void> {
    await readList();
    const listed = targets.map((target, i) => [target, loads.servers[i]!] as const);
    retries ??= scrapeEach(
      listed.filter(([, { failure }]) => failure !== undefined),
      signal,
    ).finally(() => {
      retries = undefined;
    });
    await scrapeEach(
      listed.filter(([, { failure }]) => failure === undefined),
      signal,
    );
  }

  const { intervalMs: restMs } = dependencies;
  const worker = createRoundWorker({ name: 'scraper', restMs, world, log, round: scrapeRound });
  return {
    ...worker,
    readList,
    async scrapeAll(signal) {
      await scrapeRound(signal);
      await retries;
    },
    async stop() {
      await scraper.close();
      await worker.stop();
      await retries;
    },
  };
}

/** Scrapes one server; a failure is logged when it begins and when it is over. */
function createServerScraper(dependencies: ScrapeWorkerDependencies) {
  const { scraper, world, log } = dependencies;
  const scrapes = createScrapeMetrics(dependencies);
  const failing = new Set<ScrapedServer>();

  async function scrapeOne({ url, host }: ScrapeTarget, server: ScrapedServer): Promise<void> {
    if (url === undefined) {
      // Not logged here: a failed lookup is logged already, and the first lookup may be under way.
      server.failure = { reason: `no address of "${host}" is known`, isAnswered: false };
      return;
    }
    const startedMs = world.monotonicMs();
    try {
      server.load = await scraper.scrape({ url, host });
      server.atMs = startedMs;
      server.failure = undefined;
      scrapes.inc({ outcome: 'ok' });
      if (failing.delete(server)) log.info({ server: server.names[0] }, 'Scraped a server again');
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
  new Gauge({
    name: 'trivet_prediction_scrape_age_seconds',
    help: 'Age of the numbers that were last scraped from a server; infinite before the first scrape.',
    labelNames: ['server'],
    registers: [metrics],
    collect() {
      this.reset();
      const oldestFirst = loads.servers.toSorted((left, right) => left.atMs - right.atMs);
      for (const { names, atMs } of oldestFirst.slice(0, MAX_SERIES))
        this.set({ server: names[0]! }, (world.monotonicMs() - atMs) / 1000);
    },
  });
  return new Counter({
    name: 'trivet_prediction_scrapes_total',
    help: 'Requests for the metrics of servers, by outcome.',
    labelNames: ['outcome'],
    registers: [metrics],
  });
}
