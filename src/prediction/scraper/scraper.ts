/** Assembles scraping: the list, the loop, and the loads that calls use. */
import { Counter } from 'prom-client';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { Worker } from '../../workers/worker.ts';
import type { World } from '../../world.ts';
import type { PredictColumns } from '../schema/columns.ts';
import type { EventRefusal, ObservationEvent, ObservationSink } from '../schema/observation-event.ts';
import { createHostAddresses } from './host-addresses.ts';
import { createServerScraper } from './scrape-server.ts';
import { createTargetList } from './scrape-targets.ts';
import { createScrapeWorker } from './scrape-worker.ts';
import { createScrapedLoads, type ScrapedLoads } from './scraped-loads.ts';

export interface ScraperDependencies {
  readonly source: string;
  readonly intervalMs: number;
  readonly timeoutMs: number;
  readonly staleAfterMs: number;
  readonly world: World;
  readonly log: Log;
  readonly metrics: Metrics;
}

export interface Scraper {
  readonly loads: ScrapedLoads;
  readonly worker: Worker;
  /** Throws `invalid` when the list cannot be read. */
  readonly readList: () => Promise<void>;
  /** Fills the rows of a call that bring no load. */
  readonly fillLoad: (columns: PredictColumns) => void;
  /** A sink that fills dispatched candidates as the calls before them were, so that both mean the same. */
  fillReports(sink: ObservationSink): ObservationSink;
}

export function createScraper(dependencies: ScraperDependencies): Scraper {
  const { world, metrics } = dependencies;
  const loads = createScrapedLoads(dependencies.staleAfterMs);
  const addresses = createHostAddresses(dependencies);
  const worker = createScrapeWorker({
    ...dependencies,
    list: createTargetList({ ...dependencies, addresses }),
    loads,
    scraper: createServerScraper({ timeoutMs: dependencies.timeoutMs, findAddresses: addresses.find }),
  });
  const staleRows = new Counter({
    name: 'trivet_prediction_scrape_stale_rows_total',
    help: 'Rows of calls that were omitted because the scraped numbers of their server were too old.',
    registers: [metrics],
  });
  return {
    loads,
    worker,
    readList: worker.readList,
    fillLoad(columns) {
      const stale = loads.fillColumns(columns, world.monotonicMs());
      if (stale > 0) staleRows.inc(stale);
    },
    fillReports: (sink) => ({ report: (events) => reportFilled(sink, events, { loads, nowMs: world.monotonicMs() }) }),
  };
}

interface Now {
  readonly loads: ScrapedLoads;
  readonly nowMs: number;
}

async function reportFilled(sink: ObservationSink, events: readonly ObservationEvent[], { loads, nowMs }: Now) {
  const kept: ObservationEvent[] = [];
  const positions: number[] = [];
  const refusals: EventRefusal[] = [];
  for (const [index, event] of events.entries()) {
    const filled = event.kind === 'dispatched' ? loads.fillInput(event.input, nowMs) : undefined;
    if (filled !== undefined && 'staleMs' in filled) {
      refusals.push({ index, reason: describeStale(filled.staleMs) });
      continue;
    }
    positions.push(index);
    kept.push(filled === undefined || event.kind !== 'dispatched' ? event : { ...event, input: filled.input });
  }
  const result = await sink.report(kept);
  for (const { index, reason } of result.refusals) refusals.push({ index: positions[index]!, reason });
  return { accepted: result.accepted, refusals: refusals.sort((a, b) => a.index - b.index) };
}

function describeStale(staleMs: number): string {
  const age = Number.isFinite(staleMs) ? `are ${Math.round(staleMs)} ms old` : 'were never read';
  return `input must bring a load: the scraped numbers of its server ${age}`;
}
