/** Servers are real HTTP servers here, good and bad. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { waitUntil } from '../../../test/support/basics/wait-until.ts';
import { createLog } from '../../telemetry/log.ts';
import { realWorld, type World } from '../../world.ts';
import { createPredictColumns } from '../schema/columns.ts';
import { fillMetrics } from '../schema/input-fields.ts';
import type { DispatchedEvent, ObservationEvent, ObservedInput } from '../schema/observation-event.ts';
import { createHostAddresses, type LookUp } from './host-addresses.ts';
import { createServerScraper } from './scrape-server.ts';
import { createTargetList } from './scrape-targets.ts';
import { createScrapeWorker } from './scrape-worker.ts';
import { createScrapedLoads } from './scraped-loads.ts';
import { createScraper } from './scraper.ts';

const METRICS = 'vllm:num_requests_running 12\nvllm:num_requests_waiting 3\nvllm:kv_cache_usage_perc 0.25\n';
const never = new AbortController().signal;

interface TestServer extends AsyncDisposable {
  readonly server: Server;
  readonly url: string;
  readonly port: number;
}

async function startServer(answer: RequestListener, host = '127.0.0.1'): Promise<TestServer> {
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

const TIMEOUT_MS = 500;
const STALE_MS = 5000;

function open(source: string, { world = realWorld, lookUp }: { world?: World; lookUp?: LookUp } = {}) {
  const metrics = new Registry();
  const log = createLog('silent');
  const loads = createScrapedLoads(STALE_MS);
  const addresses = createHostAddresses({ world, log, ...(lookUp && { lookUp }) });
  const scraper = createServerScraper({ timeoutMs: TIMEOUT_MS, findAddresses: addresses.find });
  const list = createTargetList({ source, addresses, log });
  const worker = createScrapeWorker({ list, loads, scraper, intervalMs: 100, world, log, metrics });
  return { loads, worker, metrics, [Symbol.asyncDispose]: () => worker.stop() };
}

async function readOutcomes(metrics: Registry): Promise<Record<string, number>> {
  const metric = await metrics.getSingleMetric('trivet_prediction_scrapes_total')!.get();
  return Object.fromEntries(metric.values.map(({ labels, value }) => [String(labels.outcome), value]));
}

function askAbout(names: readonly string[]) {
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

test('a server that tells its load has it in rows that bring none, under each of its names', async () => {
  await using good = await startServer((_request, response) => response.end(METRICS));
  await using opened = open(good.url);
  await opened.worker.scrapeAll(never);
  const columns = askAbout([`127.0.0.1:${good.port}`, '127.0.0.1', 'another', '127.0.0.1']);
  columns.numRequestRunning[3] = 1;
  assert.equal(opened.loads.fillColumns(columns, realWorld.monotonicMs()), 0);
  assert.deepEqual(Array.from(columns.numRequestRunning), [12, 12, 0, 1], 'a row that brings a load keeps it');
  assert.deepEqual(Array.from(columns.numRequestWaiting), [3, 3, 0, 0]);
  assert.deepEqual(Array.from(columns.kvCacheUsage), [0.25, 0.25, 0, 0]);
});

const bad: [title: string, answer: RequestListener][] = [
  ['hangs', () => {}],
  ['stops in the middle', (_request, response) => void response.write(METRICS)],
  ['answers 500', (_request, response) => void response.writeHead(500).end(METRICS)],
  ['redirects', (_request, response) => void response.writeHead(302, { location: '/elsewhere' }).end()],
  ['says NaN', (_request, response) => void response.end(METRICS.replace('12', 'NaN'))],
  ['says 1e308', (_request, response) => void response.end(METRICS.replace('12', '1e308'))],
  ['says less than nothing', (_request, response) => void response.end(METRICS.replace('0.25', '-1'))],
  ['declares 100 MB', (_request, response) => void response.writeHead(200, { 'content-length': 1e8 }).end(METRICS)],
  [
    'sends 100 MB',
    (_request, response) => {
      const chunk = Buffer.alloc(1e6, 'x');
      let sent = 0;
      const more = (): void => {
        while (sent++ < 100) if (!response.write(chunk)) return void response.once('drain', more);
        response.end();
      };
      more();
    },
  ],
  ['closes', (request) => void request.socket.destroy()],
];
for (const [title, answer] of bad)
  test(`a server that ${title} fails by itself, and the others are scraped`, async () => {
    let asked = 0;
    await using evil = await startServer((request, response) => {
      asked++;
      return answer(request, response);
    });
    await using good = await startServer((_request, response) => response.end(METRICS));
    await using opened = open(`evil=${evil.url},good=${good.url}`);
    await opened.worker.scrapeAll(never);
    assert.deepEqual(await readOutcomes(opened.metrics), { ok: 1, failed: 1 });
    assert.deepEqual(
      opened.loads.servers.map(({ names, load }) => [names, load?.running]),
      [
        [['evil'], undefined],
        [['good'], 12],
      ],
    );
    assert.equal(asked, 1);
  });

test('numbers that are too old leave rows out, until the server answers again', async () => {
  let isUp = true;
  await using server = await startServer(
    (_request, response) => void (isUp ? response.end(METRICS) : response.destroy()),
  );
  let nowMs = 1000;
  await using opened = open(`s=${server.url}`, { world: { ...realWorld, monotonicMs: () => nowMs } });
  const fill = () => {
    const columns = askAbout(['s']);
    return [opened.loads.fillColumns(columns, nowMs), columns.kvCacheUsage[0]];
  };
  await opened.worker.readList();
  assert.deepEqual(fill(), [1, Number.NaN], 'nothing is known yet');
  await opened.worker.scrapeAll(never);
  assert.deepEqual(fill(), [0, 0.25]);
  isUp = false;
  nowMs += STALE_MS;
  await opened.worker.scrapeAll(never);
  assert.deepEqual(fill(), [0, 0.25]);
  nowMs += 1;
  assert.deepEqual(fill(), [1, Number.NaN]);
  const text = await opened.metrics.metrics();
  assert.match(text, /trivet_prediction_scrape_age_seconds\{server="s"\} 5\.001/);
  isUp = true;
  await opened.worker.scrapeAll(never);
  assert.deepEqual(fill(), [0, 0.25]);
});

test('a file is read again when it changes; what cannot be read leaves the servers of before', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-test-'));
  try {
    const file = join(folder, 'servers');
    await using server = await startServer((_request, response) => response.end(METRICS));
    writeFileSync(file, `# our servers\na=${server.url}\n\n`);
    await using opened = open(file);
    const names = () => opened.loads.servers.map((each) => each.names[0]);
    await opened.worker.scrapeAll(never);
    assert.deepEqual(names(), ['a']);
    writeFileSync(file, `a=${server.url} # the first\nbcd=${server.url}\n`);
    await opened.worker.scrapeAll(never);
    assert.deepEqual(names(), ['a', 'bcd']);
    writeFileSync(file, 'ftp://nowhere\n');
    await opened.worker.scrapeAll(never);
    assert.deepEqual(names(), ['a', 'bcd']);
    rmSync(file);
    await opened.worker.scrapeAll(never);
    assert.deepEqual(names(), ['a', 'bcd']);
    await assert.rejects(open(file).worker.readList(), /the file ".*servers" must be readable/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('the age of a server is shown under its name, however many servers were listed before it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-test-'));
  try {
    const file = join(folder, 'servers');
    await using server = await startServer((_request, response) => response.end(METRICS));
    const readServers = async (names: readonly string[]): Promise<unknown[]> => {
      writeFileSync(file, names.map((name) => `${name}=${server.url}`).join('\n'));
      await opened.worker.readList();
      const { values } = await opened.metrics.getSingleMetric('trivet_prediction_scrape_age_seconds')!.get();
      return values.map(({ labels }) => labels.server);
    };
    writeFileSync(file, '');
    await using opened = open(file);
    const many = Array.from({ length: 300 }, (_, index) => `pod-${index}`);
    assert.deepEqual(await readServers(many), many.slice(0, 256));
    assert.deepEqual(await readServers(['new-1', 'new-2']), ['new-1', 'new-2']);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('beyond 256 servers, those with the oldest numbers are shown', async () => {
  await using server = await startServer((_request, response) => response.end(METRICS));
  const names = Array.from({ length: 257 }, (_, index) => `pod-${index}`);
  await using opened = open(names.map((name) => `${name}=${server.url}`).join(','));
  await opened.worker.readList();
  for (const [index, each] of opened.loads.servers.entries()) each.atMs = 1000 - index;
  const { values } = await opened.metrics.getSingleMetric('trivet_prediction_scrape_age_seconds')!.get();
  assert.deepEqual(
    values.map(({ labels }) => labels.server),
    names.slice(1).reverse(),
  );
});

/** Scrapes until the loads are as they should be: names are looked up beside the scrapes. */
async function scrapeUntil({ worker, loads }: ReturnType<typeof open>, holds: (running: unknown[]) => boolean) {
  await waitUntil(async () => {
    await worker.scrapeAll(never);
    return holds(loads.servers.map(({ load }) => load?.running));
  });
}

test('a name is resolved, and stands for its address too', async () => {
  await using server = await startServer((_request, response) => response.end(METRICS));
  await using opened = open(`http://localhost:${server.port}/metrics`);
  await scrapeUntil(opened, (running) => running.includes(12));
  const found = opened.loads.servers.find(({ load }) => load !== undefined);
  assert.ok(found?.names.includes(`127.0.0.1:${server.port}`));
});

test('a host of several addresses that the list gives a name is one server, asked where it answers', async () => {
  const hosts: (string | undefined)[] = [];
  await using server = await startServer((request, response) => {
    hosts.push(request.headers.host);
    response.end(METRICS);
  });
  await using opened = open(`gpu=http://gpu.test:${server.port}/metrics`, {
    lookUp: async () => ['::1', '127.0.0.1'],
  });
  await scrapeUntil(opened, (running) => running[0] === 12);
  assert.deepEqual(
    opened.loads.servers.map(({ names }) => names),
    [['gpu']],
  );
  assert.equal(hosts[0], `gpu.test:${server.port}`);
});

test('rows of a server whose name is not resolved are omitted, and a resolver that hangs delays no scrape', async () => {
  await using good = await startServer((_request, response) => response.end(METRICS));
  await using opened = open(`lost=http://lost.test/metrics,good=${good.url}`, { lookUp: () => new Promise(() => {}) });
  await opened.worker.scrapeAll(never);
  const columns = askAbout(['lost', 'good']);
  assert.equal(opened.loads.fillColumns(columns, realWorld.monotonicMs()), 1);
  assert.deepEqual(Array.from(columns.kvCacheUsage), [Number.NaN, 0.25]);
  assert.equal(opened.loads.servers[0]?.failure?.reason, 'no address of "lost.test" is known');
});

test('servers that hang do not delay those that answer', async () => {
  let hanging = 0;
  await using silent = await startServer(() => void hanging++, '0.0.0.0');
  let answered = 0;
  await using good = await startServer((_request, response) => {
    answered++;
    response.end(METRICS);
  });
  // Three times as many as are asked at once: a round that waits for all of them takes three timeouts.
  const many = Array.from({ length: 96 }, (_, i) => `http://127.0.1.${i + 1}:${silent.port}/metrics`);
  await using opened = open([...many, `good=${good.url}`].join());
  await opened.worker.scrapeAll(never);
  const [hungBefore, answeredBefore] = [hanging, answered];
  opened.worker.start();
  await waitUntil(() => answered - answeredBefore >= 5);
  assert.ok(hanging - hungBefore < 3 * 96, `${hanging - hungBefore} requests hung meanwhile`);
});

const input: ObservedInput = {
  podType: '',
  ...fillMetrics(() => 0),
  inputTokenLength: 100,
  serverIp: 'up',
};

test('reports are filled as the calls before them were; without fresh numbers they are refused', async () => {
  await using server = await startServer((_request, response) => response.end(METRICS));
  const scraper = createScraper({
    source: `up=${server.url},down=http://127.0.0.1:1/metrics`,
    intervalMs: 100,
    timeoutMs: TIMEOUT_MS,
    staleAfterMs: STALE_MS,
    world: realWorld,
    log: createLog('silent'),
    metrics: new Registry(),
  });
  await scraper.readList();
  scraper.worker.start();
  while (scraper.loads.servers[0]?.load === undefined) await new Promise((resolve) => setImmediate(resolve));
  const reported: ObservationEvent[] = [];
  const sink = scraper.fillReports({
    report: async (events) => {
      reported.push(...events);
      return { accepted: events.length - 1, refusals: [{ index: 1, reason: 'no room' }] };
    },
  });
  const dispatched = (serverIp: string): DispatchedEvent => ({
    kind: 'dispatched',
    requestId: serverIp,
    targetModel: 'm',
    input: { ...input, serverIp },
    atMs: 1,
  });
  const result = await sink.report([dispatched('down'), dispatched('up'), dispatched('unknown')]);
  await scraper.worker.stop();
  assert.deepEqual(
    reported.map((event) => (event.kind === 'dispatched' ? event.input.numRequestRunning : 0)),
    [12, 0],
  );
  assert.deepEqual(result, {
    accepted: 1,
    refusals: [
      { index: 0, reason: 'input must bring a load: the scraped numbers of its server were never read' },
      { index: 2, reason: 'no room' },
    ],
  });
});
