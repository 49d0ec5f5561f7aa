import assert from 'node:assert/strict';
import { Registry } from 'prom-client';
import {
  dispatched,
  finished,
  firstToken,
  input,
  openSink,
  whole,
} from '../../../test/support/prediction/observation-sink.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { type Store, statement } from '../../database/store.ts';
import { SWEEP_WITHOUT_PAUSES } from '../../database/sweep.ts';
import { createLog } from '../../telemetry/log.ts';
import { createObservationService } from '../api/observation-service.ts';
import { createPriorModel } from '../model/model.ts';
import { createPredictor, SHARED_NAME } from '../online/predictor.ts';
import type { ObservationEvent } from '../schema/observation-event.ts';
import { listLiveStates } from '../sharing/live-state-store.ts';
import { createSharingWorker } from '../sharing/sharing-worker.ts';
import { createDraft } from './event-draft.ts';
import { EventIntake } from './event-intake.ts';
import { EventQueue } from './event-queue.ts';
import { createRequestSweep } from './request-sweeper.ts';
import { listSamples } from './sample-store.ts';

async function listTimes(store: Store) {
  return (await listSamples(store, 'm', { limit: 100 })).map(({ observation }) => [
    observation.ttftMs,
    observation.tpotMs,
  ]);
}

const orders: [title: string, events: readonly ObservationEvent[]][] = [
  ['in order', [dispatched, firstToken, finished]],
  ['with the dispatch last', [firstToken, finished, dispatched]],
  ['with the first token last', [dispatched, finished, firstToken]],
  ['each twice', [dispatched, dispatched, firstToken, firstToken, finished, finished]],
];
for (const [title, events] of orders)
  forEachEngine(`the events of a request make each time a sample once, ${title}`, async (store) => {
    const { sink } = openSink(store);
    for (const event of events) await sink.report([event]);
    const times = (await listTimes(store)).sort((a, b) => (a[0] ?? 0) - (b[0] ?? 0));
    assert.deepEqual(times, [
      [undefined, 20],
      [120, undefined],
    ]);
    const samples = (await listSamples(store, 'm', { limit: 2 })).map(({ observation }) => observation);
    assert.deepEqual(samples[0]?.input, input);
    assert.equal(samples.find(({ tpotMs }) => tpotMs === 20)?.outputTokens, finished.outputTokens);
  });

forEachEngine('repeated events are refused by name, in one batch too, and the others are taken', async (store) => {
  const { sink } = openSink(store);
  const answer = await sink.report([
    dispatched,
    firstToken,
    dispatched,
    firstToken,
    { ...whole, requestId: 'w' },
    { ...whole, requestId: 'w' },
  ]);
  assert.deepEqual(answer, {
    accepted: 3,
    refusals: [
      { index: 2, reason: 'request_id "r1" was dispatched already' },
      { index: 3, reason: 'request_id "r1" had its first token already' },
      { index: 5, reason: 'request_id "w" was reported already' },
    ],
  });
});

forEachEngine(
  'of many target models a few keep a live state of their own, and the one of the others is kept too',
  async (store) => {
    const { sink, sharing, predictor, world, metrics } = openSink(store);
    const names = Array.from({ length: 600 }, (_, index) => `m${index}`);
    await sink.report(names.map((targetModel) => ({ ...whole, targetModel })));
    await sharing.stop();
    const saved = await listLiveStates(store);
    assert.equal(saved.length, 257);
    assert.equal(saved[0]?.targetModel, SHARED_NAME);

    const restarted = createPredictor();
    const dependencies = { store, world, log: createLog('silent'), metrics: new Registry() };
    await createSharingWorker({ ...dependencies, predictor: restarted }).restore();
    for (const name of ['m0', 'm599'])
      assert.deepEqual(restarted.live(name).save().recent, predictor.live(name).save().recent, name);
    const text = await metrics.metrics();
    assert.equal(text.match(/^trivet_prediction_observed_total\{model="m/gm)?.length, 2 * 256);
    assert.match(text, /^trivet_prediction_observed_total\{model="\(others\)",target="ttft"\} 344$/m);
  },
);

forEachEngine('an event with a text that no store keeps is refused alone, the others are stored', async (store) => {
  const { sink, world } = openSink(store);
  const service = createObservationService({ sink, world });
  const event = { targetModel: 'm', input: { inputTokenLength: 1 }, ttftMillis: 5 };
  const report = await service.reportJson([
    { observation: event },
    { observation: { ...event, requestId: 'a\0' } },
    { observation: { ...event, targetModel: 'm\0' } },
    { observation: { ...event, input: { podType: '\0' } } },
    { observation: { ...event, input: { serverIp: '10.0.0.1\0' } } },
    { observation: event },
  ]);
  assert.deepEqual(
    report.refusals.map(({ index, reason }) => [index, reason]),
    ['request_id', 'target_model', 'input.pod_type', 'input.server_ip'].map((field, at) => [
      at + 1,
      `${field} must not contain the character NUL`,
    ]),
  );
  assert.equal(report.accepted, 2);
  assert.equal((await listSamples(store, 'm', { limit: 100 })).length, 2);
});

// No event that passes its checks breaks a rule of the tables, so the test adds one: two rows may not have this time.
const refuseRowSql = statement(
  'test-refuse-row',
  "CREATE UNIQUE INDEX test_refuse_row ON pending_requests (at_ms) WHERE request_id LIKE 'refused-%'",
);

forEachEngine('a row that the store refuses fails its own report, not those that share the commit', async (store) => {
  await store.write(refuseRowSql);
  const queue = new EventQueue(openSink(store).sink);
  const send = async (requestIds: readonly string[]) => {
    const intake = new EventIntake({ queue, nowMs: () => 1000, onRoom: () => {} });
    for (const requestId of requestIds) {
      assert.ok(intake.reserve());
      intake.take(() => ({ ...createDraft('finished'), requestId }), undefined);
    }
    return await intake.finish();
  };
  const reports = Array.from({ length: 24 }, (_, index) => [`good-${index}-a`, `good-${index}-b`]);
  const outcomes = await Promise.allSettled([...reports, ['refused-1', 'refused-2']].map(send));
  assert.deepEqual(
    outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value.accepted : outcome.reason.code)),
    [...reports.map(() => 2), 'conflict'],
  );
});

forEachEngine('impossible times are refused with their position, whatever stands around them', async (store) => {
  const { sink } = openSink(store);
  const answer = await sink.report([whole, { ...whole, ttftMs: 1e12 }, { ...whole, tpotMs: 9e7 }, whole]);
  assert.deepEqual(
    answer.refusals.map(({ index, reason }) => [index, reason.split(',')[0]]),
    [
      [1, 'ttft_millis must be more than 0 and at most a day'],
      [2, 'tpot_millis must be more than 0 and at most a day'],
    ],
  );
  assert.equal((await listTimes(store)).length, 2);
});

forEachEngine('events of one request that two processes received are joined', async (store, { openAnother }) => {
  await openSink(await openAnother()).sink.report([dispatched]);
  await openSink(store).sink.report([firstToken]);
  assert.deepEqual(await listTimes(store), [[120, undefined]]);
});

const MINUTE_MS = 60_000;

forEachEngine('requests without further events are forgotten, and counted unless they were complete', async (store) => {
  const { sink, world } = openSink(store);
  await sink.report([dispatched, firstToken, finished, { ...dispatched, requestId: 'lost' }]);
  let lost = 0;
  const sweep = createRequestSweep(store, (count) => {
    lost += count;
  });
  const sweepAfter = (minutes: number) => sweep(world.nowMs() + minutes * MINUTE_MS, SWEEP_WITHOUT_PAUSES);
  assert.deepEqual(await sweepAfter(10), { oldRequests: 0, completeRequests: 0 });
  assert.deepEqual(await sweepAfter(11), { oldRequests: 0, completeRequests: 1 });
  assert.equal(lost, 0);
  assert.deepEqual(await sweepAfter(61), { oldRequests: 1, completeRequests: 0 });
  assert.equal(lost, 1);
});

const countPendingSql = statement<{ count: number }>(
  'test-count-pending',
  'SELECT COUNT(*) AS count FROM pending_requests',
);

forEachEngine('many requests are forgotten a batch at a time, and counted up to one that fails', async (store) => {
  const { sink, world } = openSink(store);
  await sink.report(Array.from({ length: 100 }, (_, index) => ({ ...dispatched, requestId: `lost-${index}` })));
  let lost = 0;
  const left: (number | undefined)[] = [];
  const sweep = createRequestSweep(store, (count) => {
    lost += count;
  });
  const pause = async () => void left.push((await store.read(countPendingSql))[0]?.count);
  const fail = () => Promise.reject(new Error('away'));
  const later = world.nowMs() + 61 * MINUTE_MS;
  await assert.rejects(sweep(later, { ...SWEEP_WITHOUT_PAUSES, pause: fail }), /away/);
  assert.equal(lost, 32);
  await sweep(later, { ...SWEEP_WITHOUT_PAUSES, pause });
  assert.deepEqual([left, lost], [[36], 100]);
});

forEachEngine('incomplete requests are read once on the way to complete ones', async (store) => {
  const { sink, world } = openSink(store);
  for (let index = 0; index < 100; index += 1) {
    const requestId = `r-${index}`;
    await sink.report([dispatched, firstToken, finished].map((event) => ({ ...event, requestId })));
    await sink.report([{ ...dispatched, requestId: `lost-${index}` }]);
    world.moveMs(1);
  }
  const ranges: number[][] = [];
  const watched: Store = {
    ...store,
    write: async (of, parameters = []) => {
      if (of.name === 'pending-sweep-complete') ranges.push(parameters.map(Number));
      return await store.write(of, parameters);
    },
  };
  const sweep = createRequestSweep(watched, () => {});
  const startMs = world.nowMs() - 100;
  const endMs = world.nowMs() + MINUTE_MS;
  await sweep(endMs + 10 * MINUTE_MS, SWEEP_WITHOUT_PAUSES);
  // Each batch begins with the last row of the one before it.
  assert.deepEqual(ranges, [
    [0, endMs, 32],
    [startMs + 31, endMs, 64],
    [startMs + 95, endMs, 128],
  ]);
  ranges.length = 0;
  await sweep(endMs + 11 * MINUTE_MS, SWEEP_WITHOUT_PAUSES);
  assert.deepEqual(ranges, [[endMs, endMs + MINUTE_MS, 32]]);
  ranges.length = 0;
  await sweep(endMs + 5 * MINUTE_MS, SWEEP_WITHOUT_PAUSES);
  assert.equal(ranges[0]?.[0], 0, 'all are read again after a clock was ahead');
});

forEachEngine('a time whose dispatch went to another process is forecast once, as of the dispatch', async (store) => {
  const [other, own] = [openSink(store), openSink(store)];
  own.predictor.swap('m', { ...createPriorModel(), id: 'm@1' });
  const requests = Array.from({ length: 100 }, (_, i) => `r${i}`);
  await other.sink.report(requests.map((requestId) => ({ ...dispatched, requestId })));
  const live = own.predictor.live('m');
  const dates: (number | undefined)[] = [];
  const forecast = live.forecast.bind(live);
  live.forecast = (columns, podType, server, sentMs) => {
    dates.push(sentMs);
    return forecast(columns, podType, server, sentMs);
  };
  await own.sink.report(requests.map((requestId) => ({ ...finished, requestId })));
  assert.equal(own.answered.length, 100);
  assert.deepEqual(
    dates,
    requests.map(() => dispatched.atMs),
  );
});
