/** Assembles scraping (list, loop, loads for calls), and decides which reported dispatches get the scraped load. */
import { Counter } from 'prom-client';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { Worker } from '../../workers/worker.ts';
import type { World } from '../../world.ts';
import type { PredictColumns } from '../schema/columns.ts';
import type { DispatchedEvent, EventRefusal, ObservationEvent, ObservationSink } from '../schema/observation-event.ts';
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
  /** Fills the rows of a call that have no load. */
  readonly fillLoad: (columns: PredictColumns) => void;
  /** Returns a sink that fills dispatches as it fills calls, with the load at the arrival of the report. */
  fillReports(sink: ObservationSink): ObservationSink;
}

export function createScraper(dependencies: ScraperDependencies): Scraper {
  const { world, metrics, staleAfterMs } = dependencies;
  const loads = createScrapedLoads(staleAfterMs);
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
    fillReports(sink) {
      const readNow = () => ({ loads, nowMs: world.nowMs(), monotonicMs: world.monotonicMs() });
      return { report: (events) => reportFilled(sink, events, readNow()) };
    },
  };
}

interface Now {
  readonly loads: ScrapedLoads;
  readonly nowMs: number;
  readonly monotonicMs: number;
}

async function reportFilled(sink: ObservationSink, events: readonly ObservationEvent[], now: Now) {
  const kept: ObservationEvent[] = [];
  const positions: number[] = [];
  const refusals: EventRefusal[] = [];
  for (const [index, event] of events.entries()) {
    const filled = event.kind === 'dispatched' ? fillDispatch(event, now) : event;
    if ('reason' in filled) {
      refusals.push({ index, reason: filled.reason });
      continue;
    }
    positions.push(index);
    kept.push(filled);
  }
  const result = await sink.report(kept);
  for (const { index, reason } of result.refusals) refusals.push({ index: positions[index]!, reason });
  return { accepted: result.accepted, refusals: refusals.sort((a, b) => a.index - b.index) };
}

/**
 * A dispatch older than this waited while the service was away, and the present load is not the one it met. A younger one may have
 * been reported together with its first token, or dated by a clock that is behind.
 */
const MAX_DISPATCH_AGE_MS = 60_000;

function fillDispatch(event: DispatchedEvent, now: Now): DispatchedEvent | Pick<EventRefusal, 'reason'> {
  const filled = now.loads.fillInput(event.input, now.monotonicMs);
  if ('staleMs' in filled) return { reason: describeStale(filled.staleMs) };
  if (filled.input === event.input) return event;
  const ageMs = now.nowMs - event.atMs;
  return ageMs > MAX_DISPATCH_AGE_MS ? { reason: describeLate(ageMs) } : { ...event, input: filled.input };
}

function describeStale(staleMs: number): string {
  const age = Number.isFinite(staleMs) ? `are ${Math.round(staleMs)} ms old` : 'were never read';
  return `input must bring a load: the scraped numbers of its server ${age}`;
}

function describeLate(ageMs: number): string {
  const age = `${Math.round(ageMs)} ms old`;
  return `input must bring a load: the dispatch is ${age}, and the load of its server at that time is not known`;
}
