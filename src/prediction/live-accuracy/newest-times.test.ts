import assert from 'node:assert/strict';
import { Registry } from 'prom-client';
import { countTurns } from '../../../test/support/basics/count-turns.ts';
import { ANSWERED_ROW } from '../../../test/support/prediction/answered-row.ts';
import { countRows } from '../../../test/support/store/count-rows.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import { registerAccuracyMetrics } from './accuracy-metrics.ts';
import { saveAccuracySums } from './accuracy-store.ts';
import { addObservation, countObservations, createSums } from './accuracy-sums.ts';
import { createNewestTimesReader } from './newest-times.ts';

const MINUTE_MS = 60_000;
const PERIOD_MS = 5 * MINUTE_MS;
const NOW = Date.UTC(2026, 5, 1, 12, 30);

/** Writes `times` observations into each of the periods that began that long ago. */
async function savePeriods(store: Store, part: string, times: number, periods: readonly number[]): Promise<void> {
  const cells = periods.map((ago) => {
    const sums = createSums();
    for (let i = 0; i < times; i++) addObservation(sums, { ...ANSWERED_ROW, nowMs: NOW });
    const startMs = NOW - ago * PERIOD_MS;
    const key = { targetModel: 'm', kind: 'pod type', part, target: 'ttft', version: 1 } as const;
    return { ...key, startMs, lastMs: startMs, sums };
  });
  await saveAccuracySums(store, 'p', cells);
}

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);

forEachEngine(
  'few rows of the day are read in a turn, and few at all once those of the past are known',
  async (store) => {
    for (const pod of upTo(50)) await savePeriods(store, `busy-${pod}`, 400, upTo(200));
    await savePeriods(store, 'rare', 7, [3, 200, 250]);
    const counted = countRows(store);
    const metrics = new Registry();
    let nowMs = NOW;
    registerAccuracyMetrics({ store: counted.store, metrics, world: { nowMs: () => nowMs, monotonicMs: () => nowMs } });
    const scrape = async (): Promise<string[]> => {
      const { values } = await metrics.getSingleMetric('trivet_prediction_mape_ratio')!.get();
      return values.map(({ labels }) => String(labels.pod_type)).sort();
    };
    const podTypes = [...upTo(50).map((pod) => `busy-${pod}`), 'rare'].sort();
    assert.deepEqual(await scrape(), podTypes);
    assert.ok(counted.mostInTurn <= 700, `${counted.mostInTurn} rows in one turn`);
    counted.rows = 0;
    nowMs += MINUTE_MS;
    await savePeriods(store, 'new', 5, [0]);
    assert.deepEqual(await scrape(), [...podTypes.slice(0, -1), 'new', 'rare']);
    assert.ok(counted.rows <= 8 * 52, `${counted.rows} rows`);
    nowMs += 11 * MINUTE_MS;
    await savePeriods(store, 'late', 5, [100]);
    assert.ok((await scrape()).includes('late'));
  },
);

forEachEngine(
  'periods are whole and together have at least 300 times, from whichever page they come',
  async (store) => {
    await savePeriods(store, 'a', 100, upTo(288));
    await savePeriods(store, 'b', 299, [0, 10, 100]);
    await savePeriods(store, 'c', 1, upTo(288));
    const sums = await createNewestTimesReader(store, { nowMs: () => NOW })();
    assert.deepEqual(
      sums.map(({ part, sums: own }) => [part, countObservations(own)]),
      [
        ['a', 300],
        ['b', 598],
        ['c', 288],
      ],
    );
  },
);

forEachEngine('the known periods of many rare series are added up a few in a turn', async (store) => {
  const series = 256;
  const periods = upTo(40).map((period) => 20 + period);
  for (const pod of upTo(series)) await savePeriods(store, `rare-${pod}`, 1, periods);
  let current: Pick<Store, 'read'> = store;
  const reading: Store = { ...store, read: (asked, parameters) => current.read(asked, parameters) };
  const read = createNewestTimesReader(reading, { nowMs: () => NOW });
  assert.equal((await read()).length, series);
  // From here on the database takes no turns of the event loop.
  current = { read: async () => [] };
  const turns = await countTurns(read());
  assert.ok(turns >= (series * periods.length) / 500, `${turns} turns`);
});
