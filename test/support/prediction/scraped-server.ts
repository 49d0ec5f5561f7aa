/** A server that reports its load over HTTP, and its scraper. */
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Registry } from 'prom-client';
import { createPredictColumns } from '../../../src/prediction/schema/columns.ts';
import { createHostAddresses, type LookUp } from '../../../src/prediction/scraper/host-addresses.ts';
import { createServerScraper } from '../../../src/prediction/scraper/scrape-server.ts';
import { createTargetList } from '../../../src/prediction/scraper/scrape-targets.ts';
import { createScrapeWorker } from '../../../src/prediction/scraper/scrape-worker.ts';
import { createScrapedLoads } from '../../../src/prediction/scraper/scraped-loads.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { realWorld, type World } from '../../../src/world.ts';

export const METRICS = 'vllm:num_requests_running 12\nvllm:num_requests_waiting 3\nvllm:kv_cache_usage_perc 0.25\n';
/** A signal that never aborts. */
export const never = new AbortController().signal;

export interface LoadServer extends AsyncDisposable {
  readonly server: Server;
  readonly url: string;
  readonly port: number;
}

export async function startLoadServer(answer: RequestListener, host = '127.0.0.1'): Promise<LoadServer> {
  const server = createServer(answer).listen(0, host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    server,
    port,
    url: `http://127.0.0.1:${port}/metrics`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export const TIMEOUT_MS = 500;
export const STALE_MS = 5000;

export function openScrapes(source: string, { world = realWorld, lookUp }: { world?: World; lookUp?: LookUp } = {}) {
  const metrics = new Registry();
  const log = createLog('silent');
  const loads = createScrapedLoads(STALE_MS);
  const addresses = createHostAddresses({ world, log, ...(lookUp && { lookUp }) });
  const scraper = createServerScraper({ timeoutMs: TIMEOUT_MS, findAddresses: addresses.find });
  const list = createTargetList({ source, addresses, log });
  const worker = createScrapeWorker({ list, loads, scraper, intervalMs: 100, world, log, metrics });
  return { loads, worker, metrics, [Symbol.asyncDispose]: () => worker.stop() };
}

/** The columns of a call about servers with these names. */
export function askAbout(names: readonly string[]) {
  const columns = createPredictColumns(names.length);
  columns.count = names.length;
  columns.source = Buffer.from(names.join(''));
  let start = 0;
  for (const [row, name] of names.entries()) {
    columns.serverIpStart[row] = start;
    columns.serverIpLength[row] = name.length;
    start += name.length;
  }
  return columns;
}
