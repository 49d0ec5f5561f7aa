import assert from 'node:assert/strict';
import { test } from 'node:test';
import { observePool } from '../../../test/support/prediction/observed-pool.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { ID_EPOCH_MS } from '../../database/ids.ts';
import type { Store } from '../../database/store.ts';
import { createLog } from '../../telemetry/log.ts';
import { listSamples, type Sample } from '../observations/sample-store.ts';
import { createMeasuredTimes } from './measured-times.ts';
import { decideMeasures, type Measures, nameEndToEnd, readTimes, takeBatch } from './training-row-store.ts';

const [pattern] = observePool({ rows: 1 });

let nextId = 1;
function createSamples(count: number, kind: 'ttft' | 'tpot'): Sample[] {
  const times = kind === 'ttft' ? { ttftMs: 100, tpotMs: undefined } : { ttftMs: undefined, tpotMs: 10 };
  return Array.from({ length: count }, () => ({ id: nextId++, observation: { ...pattern!, ...times, atMs: 1000 } }));
}

/** Ids follow the time: those of these rows are of the first second. */
const NOW_MS = ID_EPOCH_MS + 40_000;
const send = (store: Store, samples: readonly Sample[], nowMs = NOW_MS) =>
  takeBatch(store, { targetModel: 'm', samples, nowMs });

async function countStored(store: Store, targetModel: string): Promise<number> {
  return (await listSamples(store, targetModel, { limit: 100_000 })).length;
}

const cases: [
  title: string,
  known: [Measures, heldRows: number, hasWaited: boolean],
  rows: readonly Sample[],
  next: readonly [string, number],
][] = [
  ['holds rows without TPOT while it is unknown', ['unknown', 0, false], createSamples(3, 'ttft'), ['held', 3]],
  ['releases them with the first TPOT row', ['unknown', 3, true], createSamples(1, 'tpot'), ['first-token', 0]],
  [
    'holds rows of a client that streams until a TPOT row follows',
    ['first-token', 0, false],
    createSamples(9, 'ttft'),
    ['held', 9],
  ],
  [
    'takes 200 rows in a row without TPOT for end-to-end times, if the first has waited',
    ['first-token', 150, true],
    createSamples(50, 'ttft'),
    ['end-to-end', 0],
  ],
  ['holds as many that came at once', ['first-token', 150, false], createSamples(50, 'ttft'), ['held', 200]],
  ['holds few that have waited', ['first-token', 150, true], createSamples(49, 'ttft'), ['held', 199]],
  ['holds no more than 5,000', ['unknown', 4999, false], createSamples(1, 'ttft'), ['end-to-end', 0]],
  ['keeps taking them so', ['end-to-end', 0, false], createSamples(1, 'ttft'), ['end-to-end', 0]],
  ['takes TPOT rows for the end of that', ['end-to-end', 0, false], createSamples(1, 'tpot'), ['first-token', 0]],
];
for (const [title, [measures, heldRows, hasWaited], rows, [next, held]] of cases)
  test(`decideMeasures() ${title}`, () =>
    assert.deepEqual(decideMeasures({ measures, heldRows, hasWaited }, readTimes(rows)), {
      measures: next,
      heldRows: held,
    }));

forEachEngine('rows of a client that streams become samples of its model, those that were held too', async (store) => {
  assert.deepEqual(await send(store, createSamples(5, 'ttft')), { samples: [], measures: 'unknown' });
  assert.equal(await countStored(store, 'm'), 0);
  const taken = await send(store, [...createSamples(2, 'ttft'), ...createSamples(3, 'tpot')]);
  assert.deepEqual([taken.measures, taken.samples.length], ['first-token', 10]);
  const stored = await listSamples(store, 'm', { limit: 100 });
  assert.deepEqual(
    stored.map(({ observation }) => [observation.ttftMs, observation.tpotMs]),
    [...Array.from({ length: 7 }, () => [100, undefined]), ...Array.from({ length: 3 }, () => [undefined, 10])],
  );
  assert.deepEqual(
    stored.map(({ observation }) => observation.input),
    stored.map(() => pattern!.input),
  );
});

forEachEngine('end-to-end times never become samples of the model itself', async (store) => {
  for (let batch = 0; batch < 4; batch++) await send(store, createSamples(60, 'ttft'), ID_EPOCH_MS + 20_000);
  assert.equal(await countStored(store, nameEndToEnd('m')), 0);
  await send(store, []);
  assert.equal(await countStored(store, 'm'), 0);
  assert.equal(await countStored(store, nameEndToEnd('m')), 240);
  const taken = await send(store, createSamples(10, 'ttft'));
  assert.deepEqual([taken.measures, taken.samples.length], ['end-to-end', 10]);
  await send(store, [...createSamples(4, 'ttft'), ...createSamples(1, 'tpot')]);
  assert.equal(await countStored(store, 'm'), 5);
  assert.equal(await countStored(store, nameEndToEnd('m')), 250);
});

forEachEngine(
  'a held row with a number that cannot be stored is dropped, and the others are released',
  async (store) => {
    const [infinite, huge, usable] = createSamples(3, 'ttft');
    const changeTokens = (sample: Sample, inflightTokens: number): Sample => {
      const { observation } = sample;
      return { ...sample, observation: { ...observation, input: { ...observation.input, inflightTokens } } };
    };
    await send(store, [changeTokens(infinite!, Number.POSITIVE_INFINITY), changeTokens(huge!, 1e300), usable!]);
    const streamed = createSamples(1, 'tpot');
    const { samples } = await send(store, streamed);
    const ids = [usable!.id, streamed[0]!.id];
    assert.deepEqual(
      samples.map(({ id }) => id),
      ids,
    );
    assert.deepEqual(
      (await listSamples(store, 'm', { limit: 100 })).map(({ id }) => id),
      ids,
    );
  },
);

forEachEngine('10,000 rows are one transaction: an id that is taken keeps all of them out', async (store) => {
  const rows = createSamples(9999, 'tpot');
  await send(store, rows.slice(0, 1));
  await assert.rejects(send(store, [...createSamples(1, 'ttft'), ...rows.slice(1), rows[0]!]));
  assert.equal(await countStored(store, 'm'), 1);
  await send(store, [...createSamples(1, 'ttft'), ...rows.slice(1), ...createSamples(1, 'tpot')]);
  assert.equal(await countStored(store, 'm'), 10_001);
});

forEachEngine('batches of two processes at once neither lose nor double a row', async (store, { openAnother }) => {
  const other = await openAnother();
  const sends = Array.from({ length: 12 }, (_, i) =>
    send(i % 2 === 0 ? store : other, createSamples(20, i < 8 ? 'ttft' : 'tpot')),
  );
  const taken = await Promise.all(sends);
  await send(store, createSamples(1, 'tpot'));
  assert.equal((await countStored(store, 'm')) + (await countStored(store, nameEndToEnd('m'))), 241);
  assert.ok(taken.every(({ samples }) => new Set(samples.map(({ id }) => id)).size === samples.length));
});

forEachEngine('a process learns that another one has seen end-to-end times', async (store, { openAnother }) => {
  const times = createMeasuredTimes({ store, log: createLog('silent') });
  const changed = Promise.withResolvers<void>();
  times.start();
  const stop = store.watch('llm-d-measures', () => changed.resolve());
  assert.equal(times.answeringModel('m'), 'm');
  await takeBatch(await openAnother(), { targetModel: 'm', samples: createSamples(5000, 'ttft'), nowMs: NOW_MS });
  await changed.promise;
  await times.load();
  assert.equal(times.answeringModel('m'), nameEndToEnd('m'));
  stop();
  await times.stop();
});
