/** Servers are real HTTP servers here, good and bad. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Registry } from 'prom-client';
import { waitUntil } from '../../../test/support/basics/wait-until.ts';
import {
  askAbout,
  METRICS,
  never,
  openScrapes,
  STALE_MS,
  startLoadServer,
} from '../../../test/support/prediction/scraped-server.ts';
import { realWorld } from '../../world.ts';

async function readOutcomes(metrics: Registry): Promise<Record<string, number>> {
  const metric = await metrics.getSingleMetric('trivet_prediction_scrapes_total')!.get();
  return Object.fromEntries(metric.values.map(({ labels, value }) => [String(labels.outcome), value]));
}

test('a server that tells its load has it in rows that bring none, under each of its names', async () => {
  await using good = await startLoadServer((_request, response) => response.end(METRICS));
  await using opened = openScrapes(good.url);
  await opened.worker.scrapeAll(never);
  const columns = askAbout([`127.0.0.1:${good.port}`, '127.0.0.1', 'another', '127.0.0.1']);
  columns.numRequestRunning[3] = 1;
  assert.equal(opened.loads.fillColumns(columns, realWorld.monotonicMs()), 0);
  assert.deepEqual(Array.from(columns.numRequestRunning), [12, 12, 0, 1], 'a row that brings a load keeps it');
  assert.deepEqual(Array.from(columns.numRequestWaiting), [3, 3, 0, 0]);
  assert.deepEqual(Array.from(columns.kvCacheUsage), [0.25, 0.25, 0, 0]);
});

test('a server that is listed twice has its load in rows', async () => {
  await using good = await startLoadServer((_request, response) => response.end(METRICS));
  await using opened = openScrapes(`${good.url},${good.url},gpu=${good.url}`);
  await opened.worker.scrapeAll(never);
  const columns = askAbout([`127.0.0.1:${good.port}`, 'gpu']);
  assert.equal(opened.loads.fillColumns(columns, realWorld.monotonicMs()), 0);
  assert.deepEqual(Array.from(columns.numRequestRunning), [12, 12]);
});

/** Each row of a call is the name of a server, and what the caller sends as running there. */
const calls: [title: string, rows: readonly (readonly [name: string, running: number])[], filled: readonly number[]][] =
  [
    [
      'a call that repeats all rows with zeros asks about idle servers there',
      [
        ['s', 0],
        ['t', 0],
        ['s', 0],
        ['t', 0],
      ],
      [12, 12, 0, 0],
    ],
    [
      'so does one whose caller knows a load',
      [
        ['s', 7],
        ['t', 0],
        ['s', 0],
        ['t', 0],
      ],
      [7, 12, 0, 0],
    ],
    [
      'a row of zeros behind one with a load asks about the server idle',
      [
        ['s', 7],
        ['s', 0],
        ['t', 0],
      ],
      [7, 0, 12],
    ],
    [
      'a candidate that is listed twice has the scraped load twice',
      [
        ['s', 0],
        ['t', 0],
        ['s', 0],
      ],
      [12, 12, 12],
    ],
    [
      'candidates that are listed twice in a row have it too',
      [
        ['s', 0],
        ['s', 0],
        ['t', 0],
        ['t', 0],
      ],
      [12, 12, 12, 12],
    ],
    [
      'all rows of the only server have it',
      [
        ['s', 0],
        ['s', 0],
        ['s', 0],
        ['s', 0],
      ],
      [12, 12, 12, 12],
    ],
    [
      'a row of zeros before one with a load has it',
      [
        ['s', 0],
        ['s', 7],
        ['t', 0],
      ],
      [12, 7, 12],
    ],
  ];
for (const [title, rows, filled] of calls)
  test(title, async () => {
    await using good = await startLoadServer((_request, response) => response.end(METRICS));
    await using opened = openScrapes(`s=${good.url},t=${good.url}`);
    await opened.worker.scrapeAll(never);
    const columns = askAbout(rows.map(([name]) => name));
    for (const [row, [, running]] of rows.entries()) columns.numRequestRunning[row] = running;
    assert.equal(opened.loads.fillColumns(columns, realWorld.monotonicMs()), 0);
    assert.deepEqual(Array.from(columns.numRequestRunning), filled);
  });

test('a call that repeats its rows about another request asks about no idle server', async () => {
  await using good = await startLoadServer((_request, response) => response.end(METRICS));
  await using opened = openScrapes(`s=${good.url},t=${good.url}`);
  await opened.worker.scrapeAll(never);
  const columns = askAbout(['s', 't', 's', 't']);
  columns.inputTokenLength[3] = 100;
  assert.equal(opened.loads.fillColumns(columns, realWorld.monotonicMs()), 0);
  assert.deepEqual(Array.from(columns.numRequestRunning), [12, 12, 12, 12]);
});

test('all rows without a load are omitted whose server is stale, also those that ask about it idle', async () => {
  await using good = await startLoadServer((_request, response) => response.end(METRICS));
  await using opened = openScrapes(`s=http://127.0.0.1:1/metrics,t=${good.url}`);
  await opened.worker.scrapeAll(never);
  const omitted = (names: readonly string[], running = 0) => {
    const columns = askAbout(names);
    columns.numRequestRunning[0] = running;
    const stale = opened.loads.fillColumns(columns, realWorld.monotonicMs());
    const rows = Array.from(columns.kvCacheUsage).flatMap((usage, row) => (Number.isNaN(usage) ? [row] : []));
    assert.equal(stale, rows.length);
    return rows;
  };
  assert.deepEqual(omitted(['s', 's']), [0, 1]);
  assert.deepEqual(omitted(['s', 't', 's']), [0, 2]);
  assert.deepEqual(omitted(['s', 't', 's', 't']), [0, 2]);
  assert.deepEqual(omitted(['s', 't', 's', 't'], 7), [], 'the caller knows its load');
  assert.deepEqual(omitted(['s', 's', 't'], 7), []);
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
    await using evil = await startLoadServer((request, response) => {
      asked++;
      return answer(request, response);
    });
    await using good = await startLoadServer((_request, response) => response.end(METRICS));
    await using opened = openScrapes(`evil=${evil.url},good=${good.url}`);
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
  await using server = await startLoadServer(
    (_request, response) => void (isUp ? response.end(METRICS) : response.destroy()),
  );
  let nowMs = 1000;
  await using opened = openScrapes(`s=${server.url}`, { world: { ...realWorld, monotonicMs: () => nowMs } });
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
    await using server = await startLoadServer((_request, response) => response.end(METRICS));
    writeFileSync(file, `# our servers\na=${server.url}\n\n`);
    await using opened = openScrapes(file);
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
    await assert.rejects(openScrapes(file).worker.readList(), /the file ".*servers" must be readable/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('servers that hang do not delay those that answer', async () => {
  let hanging = 0;
  await using silent = await startLoadServer(() => void hanging++, '0.0.0.0');
  let answered = 0;
  await using good = await startLoadServer((_request, response) => {
    answered++;
    response.end(METRICS);
  });
  // Three times as many as are asked at once: a round that waits for all of them takes three timeouts.
  const many = Array.from({ length: 96 }, (_, i) => `http://127.0.1.${i + 1}:${silent.port}/metrics`);
  await using opened = openScrapes([...many, `good=${good.url}`].join());
  await opened.worker.scrapeAll(never);
  const [hungBefore, answeredBefore] = [hanging, answered];
  opened.worker.start();
  await waitUntil(() => answered - answeredBefore >= 5);
  assert.ok(hanging - hungBefore < 3 * 96, `${hanging - hungBefore} requests hung meanwhile`);
});
