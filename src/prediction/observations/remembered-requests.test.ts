import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { observePool } from '../../../test/support/prediction/observed-pool.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import { createPredictor, type SwappablePredictor } from '../online/predictor.ts';
import { createPredictColumns, HISTORY_COLUMNS } from '../schema/columns.ts';
import type { DispatchedEvent, FirstTokenEvent } from '../schema/observation-event.ts';
import { createObservationSink } from './observation-sink.ts';
import { readHistoryAsOf } from './remembered-requests.ts';
import { listSamples } from './sample-store.ts';

const [{ input: pooled }] = observePool({ rows: 1 }) as [ReturnType<typeof observePool>[number]];
const input = { ...pooled, inputTokenLength: 1000, prefixCacheScore: 0.25 };

function dispatched(requestId: string, atMs: number): DispatchedEvent {
  return { kind: 'dispatched', requestId, targetModel: 'm', input, atMs };
}

function firstToken(requestId: string, ttftMs: number): FirstTokenEvent {
  return { kind: 'first_token', requestId, ttftMs, atMs: 0 };
}

/** A sink and a predictor by a clock that the test moves. */
function openService(store: Store) {
  const world = { ms: 0, nowMs: () => world.ms, monotonicMs: () => world.ms };
  const predictor = createPredictor(world);
  const sink = createObservationSink({
    store,
    world,
    metrics: new Registry(),
    predictor,
    onDrift: () => {},
    onObserved: () => {},
  });
  const reportAt = (ms: number, events: Parameters<typeof sink.report>[0]) => {
    world.ms = ms;
    return sink.report(events);
  };
  return { predictor, world, reportAt };
}

async function listHistories(store: Store): Promise<Map<string, Record<string, number>>> {
  const samples = await listSamples(store, 'm', { limit: 100 });
  return new Map(
    samples.map(({ observation: { atMs, history } }) => [
      `${atMs}`,
      Object.fromEntries(HISTORY_COLUMNS.map((name, h) => [name, history![h]!])),
    ]),
  );
}

forEachEngine('a sample keeps what was known of its server when it was asked', async (store) => {
  const { reportAt } = openService(store);
  await reportAt(1000, [dispatched('a', 1000)]);
  await reportAt(1100, [dispatched('b', 1100)]);
  await reportAt(1200, [firstToken('a', 200)]);
  await reportAt(1250, [dispatched('c', 1250)]);
  await reportAt(2000, [firstToken('b', 500), firstToken('c', 600)]);
  const histories = await listHistories(store);
  assert.ok(Object.values(histories.get('1000')!).every(Number.isNaN));
  assert.equal(histories.get('1100')!.waitingTokens, 750);
  assert.deepEqual(histories.get('1250'), {
    sinceFirstTokenMs: 50,
    firstTokenGapMs: Number.NaN,
    waitingTokens: 750,
    oldestWaitingMs: 150,
    expectedWaitMs: Number.NaN,
    sinceDispatchMs: 150,
    sinceEarlierDispatchMs: 250,
  });
});

test('an event gets the history of its server without memory outside the heap', () => {
  const predictor = createPredictor({ nowMs: () => 2000, monotonicMs: () => 2000 });
  const { servers, histories } = predictor.live('m');
  const history = histories.ensure(servers.ensure(Buffer.from(input.serverIp)));
  history.begin(1000);
  history.dispatch('a', { atMs: 1000, tokens: 750 });
  const events = ['b', 'c'].map((requestId) => readHistoryAsOf(predictor, dispatched(requestId, 1500), 2000));
  assert.notEqual((events[0] as DispatchedEvent).history, (events[1] as DispatchedEvent).history);
  for (const event of events) {
    const read = (event as DispatchedEvent).history!;
    assert.ok(Array.isArray(read), 'a typed array has a buffer outside the heap in each thread that it comes to');
    assert.equal(read[HISTORY_COLUMNS.indexOf('sinceDispatchMs')], 500);
  }
});

forEachEngine(
  'a request that is reported late keeps what was known when it was asked, not when it was reported',
  async (store) => {
    const { reportAt } = openService(store);
    await reportAt(1000, [dispatched('a', 900), dispatched('b', 950)]);
    await reportAt(6000, [dispatched('c', 3000), dispatched('d', 4000)]);
    await reportAt(
      9000,
      ['a', 'b', 'c', 'd'].map((requestId) => firstToken(requestId, 50)),
    );
    const histories = await listHistories(store);
    assert.ok(Number.isNaN(histories.get('950')!.sinceDispatchMs));
    assert.equal(histories.get('3000')!.sinceDispatchMs, 2050);
    assert.equal(histories.get('4000')!.sinceDispatchMs, 3050, 'nothing of the other request in its batch');
    assert.equal(histories.get('4000')!.waitingTokens, 1500);
  },
);

forEachEngine('Predict uses the history of each server, and of no other', async (store) => {
  const { predictor, world, reportAt } = openService(store);
  await reportAt(1010, [dispatched('a', 1000), dispatched('b', 1010)]);
  await reportAt(1300, [firstToken('a', 300)]);
  world.ms = 1400;
  const columns = createPredictColumns(2);
  const names = [Buffer.from(input.serverIp), Buffer.from('other')];
  columns.source = Buffer.concat(names);
  columns.serverIpStart.set([0, names[0]!.length]);
  columns.serverIpLength.set(names.map((name) => name.length));
  columns.count = 2;
  predictor.predict('m', columns, { ttftMs: new Float64Array(2), tpotMs: new Float64Array(2) });
  assert.deepEqual(
    [columns.sinceFirstTokenMs[0], columns.waitingTokens[0], columns.oldestWaitingMs[0]],
    [100, 750, 390],
  );
  assert.ok(HISTORY_COLUMNS.every((name) => Number.isNaN(columns[name][1]!)));
});

/** The present history of the server, by the names of its columns. */
function readHistory(predictor: SwappablePredictor, nowMs: number): Record<string, number> {
  const { histories, servers } = predictor.live('m');
  const known = new Float64Array(HISTORY_COLUMNS.length);
  histories.find(servers.ensure(Buffer.from(input.serverIp)))!.read(nowMs, known);
  return Object.fromEntries(HISTORY_COLUMNS.map((name, h) => [name, known[h]!]));
}

const DAY_MS = 86_400_000;

forEachEngine('events that are dated ahead count from their report, and end no request that waits', async (store) => {
  const { predictor, reportAt } = openService(store);
  await reportAt(1000, [dispatched('a', 1000)]);
  await reportAt(1200, [dispatched('b', 1200 + DAY_MS)]);
  const { waitingTokens, oldestWaitingMs, sinceDispatchMs } = readHistory(predictor, 1300);
  assert.deepEqual([waitingTokens, oldestWaitingMs, sinceDispatchMs], [1500, 300, 100]);
  await reportAt(1400, [firstToken('b', 100)]);
  await reportAt(1500, [dispatched('c', 1500)]);
  await reportAt(1600, [firstToken('c', 100)]);
  const after = readHistory(predictor, 1650);
  assert.deepEqual([after.sinceFirstTokenMs, after.sinceDispatchMs, after.firstTokenGapMs], [50, 150, 200]);
  const histories = await listHistories(store);
  assert.equal(histories.get('1200')!.oldestWaitingMs, 200, 'what was known when it was reported');
});

forEachEngine('a whole observation that is dated ahead counts from its report', async (store) => {
  const { predictor, reportAt } = openService(store);
  const whole = { kind: 'observation', requestId: 'w', targetModel: 'm', input, tpotMs: undefined } as const;
  await reportAt(1000, [{ ...whole, atMs: DAY_MS, ttftMs: 50, outputTokens: 9 }]);
  const { sinceFirstTokenMs, sinceDispatchMs } = readHistory(predictor, 1300);
  assert.deepEqual([sinceFirstTokenMs, sinceDispatchMs], [300, 300]);
});

const finishedA = { kind: 'finished', requestId: 'a', tpotMs: 20, outputTokens: 9, atMs: 1100 } as const;
const laterDispatches: [title: string, reports: Parameters<ReturnType<typeof openService>['reportAt']>[1][]][] = [
  ['its first token', [[firstToken('a', 200)], [dispatched('a', 1000)]]],
  ['its first token of the same report', [[firstToken('a', 200), dispatched('a', 1000)]]],
  ['its first token and its end', [[firstToken('a', 200), finishedA], [dispatched('a', 1000)]]],
  ['its end', [[finishedA], [dispatched('a', 1000)]]],
  ['its end without a TPOT', [[{ ...finishedA, tpotMs: undefined, outputTokens: 1 }], [dispatched('a', 1000)]]],
];
for (const [title, reports] of laterDispatches)
  forEachEngine(`a request whose dispatch is reported after ${title} does not wait`, async (store) => {
    const { predictor, reportAt } = openService(store);
    for (const [i, events] of reports.entries()) await reportAt(1300 + 100 * i, events);
    const history = readHistory(predictor, 1500);
    const hasFirstToken = reports.flat().some(({ kind }) => kind === 'first_token');
    assert.equal(history.waitingTokens, 0);
    assert.equal(history.sinceFirstTokenMs, hasFirstToken ? 300 : Number.NaN);
  });

forEachEngine('a request that ends without a first token waits no more', async (store) => {
  const { predictor, reportAt } = openService(store);
  await reportAt(1000, [dispatched('a', 1000)]);
  await reportAt(1100, [{ kind: 'finished', requestId: 'a', tpotMs: undefined, outputTokens: 1, atMs: 1100 }]);
  assert.equal(readHistory(predictor, 1200).waitingTokens, 0);
});
