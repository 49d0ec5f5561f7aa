/** Reports of dispatches without a load, filled from what a real HTTP server tells. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { waitUntil } from '../../../test/support/basics/wait-until.ts';
import { METRICS, STALE_MS, startLoadServer, TIMEOUT_MS } from '../../../test/support/prediction/scraped-server.ts';
import { createLog } from '../../telemetry/log.ts';
import { realWorld } from '../../world.ts';
import { fillMetrics } from '../schema/input-fields.ts';
import type { DispatchedEvent, ObservationEvent, ObservedInput } from '../schema/observation-event.ts';
import { createScraper } from './scraper.ts';

const input: ObservedInput = {
  podType: '',
  ...fillMetrics(() => 0),
  inputTokenLength: 100,
  serverIp: 'up',
};

async function startScraper(source: string, world = realWorld) {
  const scraper = createScraper({
    source,
    intervalMs: 100,
    timeoutMs: TIMEOUT_MS,
    staleAfterMs: STALE_MS,
    world,
    log: createLog('silent'),
    metrics: new Registry(),
  });
  await scraper.readList();
  scraper.worker.start();
  await waitUntil(() => scraper.loads.servers[0]?.load !== undefined);
  return scraper;
}

test('reports are filled as the calls before them were; without fresh numbers they are refused', async () => {
  await using server = await startLoadServer((_request, response) => response.end(METRICS));
  const scraper = await startScraper(`up=${server.url},down=http://127.0.0.1:1/metrics`);
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
    atMs: Date.now(),
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

test('a dispatch that waited longer than a minute is refused, unless it brings a load', async () => {
  await using server = await startLoadServer((_request, response) => response.end(METRICS));
  const nowMs = 1_700_000_000_000;
  const scraper = await startScraper(`up=${server.url}`, { ...realWorld, nowMs: () => nowMs });
  const reported: ObservationEvent[] = [];
  const sink = scraper.fillReports({
    report: async (events) => {
      reported.push(...events);
      return { accepted: events.length, refusals: [] };
    },
  });
  const dispatched = (ageMs: number, own: Partial<ObservedInput> = {}): DispatchedEvent => ({
    kind: 'dispatched',
    requestId: String(ageMs),
    targetModel: 'm',
    input: { ...input, ...own },
    atMs: nowMs - ageMs,
  });
  const result = await sink.report([
    dispatched(600_000),
    dispatched(60_001),
    dispatched(60_000),
    dispatched(-3_600_000),
    dispatched(60_002, { numRequestRunning: 4 }),
    dispatched(60_003, { serverIp: 'unknown' }),
  ]);
  await scraper.worker.stop();
  assert.deepEqual(
    reported.map((event) => event.kind === 'dispatched' && [event.input.numRequestRunning, nowMs - event.atMs]),
    [
      [12, 60_000],
      [12, -3_600_000],
      [4, 60_002],
      [0, 60_003],
    ],
  );
  const reason = (ageMs: number) =>
    `input must bring a load: the dispatch is ${ageMs} ms old, and the load of its server at that time is not known`;
  assert.deepEqual(result.refusals, [
    { index: 0, reason: reason(600_000) },
    { index: 1, reason: reason(60_001) },
  ]);
});
