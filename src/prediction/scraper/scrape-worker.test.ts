/** Names and addresses of scraped servers, and the metric of their ages. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { waitUntil } from '../../../test/support/basics/wait-until.ts';
import {
  askAbout,
  METRICS,
  never,
  openScrapes,
  startLoadServer,
} from '../../../test/support/prediction/scraped-server.ts';
import { realWorld } from '../../world.ts';

test('the age of a server is shown under its name, however many servers were listed before it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-test-'));
  try {
    const file = join(folder, 'servers');
    await using server = await startLoadServer((_request, response) => response.end(METRICS));
    const readServers = async (names: readonly string[]): Promise<unknown[]> => {
      writeFileSync(file, names.map((name) => `${name}=${server.url}`).join('\n'));
      await opened.worker.readList();
      const { values } = await opened.metrics.getSingleMetric('trivet_prediction_scrape_age_seconds')!.get();
      return values.map(({ labels }) => labels.server);
    };
    writeFileSync(file, '');
    await using opened = openScrapes(file);
    const many = Array.from({ length: 300 }, (_, index) => `pod-${index}`);
    assert.deepEqual(await readServers(many), many.slice(0, 256));
    assert.deepEqual(await readServers(['new-1', 'new-2']), ['new-1', 'new-2']);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('beyond 256 servers, those with the oldest numbers are shown', async () => {
  await using server = await startLoadServer((_request, response) => response.end(METRICS));
  const names = Array.from({ length: 257 }, (_, index) => `pod-${index}`);
  await using opened = openScrapes(names.map((name) => `${name}=${server.url}`).join(','));
  await opened.worker.readList();
  for (const [index, each] of opened.loads.servers.entries()) each.atMs = 1000 - index;
  const { values } = await opened.metrics.getSingleMetric('trivet_prediction_scrape_age_seconds')!.get();
  assert.deepEqual(
    values.map(({ labels }) => labels.server),
    names.slice(1).reverse(),
  );
});

/** Scrapes until the loads are as they should be: names are looked up beside the scrapes. */
async function scrapeUntil({ worker, loads }: ReturnType<typeof openScrapes>, holds: (running: unknown[]) => boolean) {
  await waitUntil(async () => {
    await worker.scrapeAll(never);
    return holds(loads.servers.map(({ load }) => load?.running));
  });
}

test('a name is resolved, and stands for its address too', async () => {
  await using server = await startLoadServer((_request, response) => response.end(METRICS));
  await using opened = openScrapes(`http://localhost:${server.port}/metrics`);
  await scrapeUntil(opened, (running) => running.includes(12));
  const found = opened.loads.servers.find(({ load }) => load !== undefined);
  assert.ok(found?.names.includes(`127.0.0.1:${server.port}`));
});

test('a host of several addresses that the list gives a name is one server, asked where it answers', async () => {
  const hosts: (string | undefined)[] = [];
  await using server = await startLoadServer((request, response) => {
    hosts.push(request.headers.host);
    response.end(METRICS);
  });
  await using opened = openScrapes(`gpu=http://gpu.test:${server.port}/metrics`, {
    lookUp: async () => ['::1', '127.0.0.1'],
  });
  await scrapeUntil(opened, (running) => running[0] === 12);
  assert.deepEqual(
    opened.loads.servers.map(({ names }) => names),
    [['gpu']],
  );
  assert.equal(hosts[0], `gpu.test:${server.port}`);
});

test('two hosts at one address are two servers, which the request tells apart', async () => {
  const running: Record<string, number> = { 'a.test': 1, 'b.test': 2 };
  await using virtual = await startLoadServer(({ headers }, response) => {
    const host = headers.host!.split(':')[0]!;
    response.end(METRICS.replace('running 12', `running ${running[host]}`));
  });
  const hosts = Object.keys(running);
  await using opened = openScrapes(hosts.map((host) => `http://${host}:${virtual.port}/metrics`).join(), {
    lookUp: async () => ['127.0.0.1'],
  });
  await scrapeUntil(opened, (running) => running.length === 2 && !running.includes(undefined));
  const columns = askAbout([...hosts, '127.0.0.1']);
  assert.equal(opened.loads.fillColumns(columns, realWorld.monotonicMs()), 0);
  assert.deepEqual(Array.from(columns.numRequestRunning), [1, 2, 0], 'the address stands for neither');
});

test('rows of a server whose name is not resolved are omitted, and a resolver that hangs delays no scrape', async () => {
  await using good = await startLoadServer((_request, response) => response.end(METRICS));
  await using opened = openScrapes(`lost=http://lost.test/metrics,good=${good.url}`, {
    lookUp: () => new Promise(() => {}),
  });
  await opened.worker.scrapeAll(never);
  const columns = askAbout(['lost', 'good']);
  assert.equal(opened.loads.fillColumns(columns, realWorld.monotonicMs()), 1);
  assert.deepEqual(Array.from(columns.kvCacheUsage), [Number.NaN, 0.25]);
  assert.equal(opened.loads.servers[0]?.failure?.reason, 'no address of "lost.test" is known');
});
