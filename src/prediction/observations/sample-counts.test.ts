/** Which samples there are, and which stay. */
import assert from 'node:assert/strict';
import { Registry } from 'prom-client';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import {
  dispatched,
  finished,
  firstToken,
  input,
  openSink,
  whole,
} from '../../../test/support/prediction/observation-sink.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { withSteadyClock } from '../../steady-clock.ts';
import { createLog } from '../../telemetry/log.ts';
import type { WholeObservation } from '../schema/observation-event.ts';
import { type FreshSamplesPage, listFreshSamples, listSampledModels } from './sample-count-store.ts';
import { createSampleKeeper, SAMPLE_LIMITS } from './sample-keeper.ts';
import { insertSampleStatements, listSamples, readSamplePages, thinModelSamples } from './sample-store.ts';

forEachEngine('fresh samples are listed by pages, every target model once', async (store) => {
  const { sink } = openSink(store);
  const names = Array.from({ length: 200 }, (_, index) => `m${index}`);
  await sink.report(names.map((targetModel) => ({ ...whole, targetModel })));
  const listed: string[] = [];
  let pages = 0;
  for (let after: string | undefined = ''; after !== undefined; pages++) {
    const page: FreshSamplesPage = await listFreshSamples(store, after);
    listed.push(...page.fresh.map(({ targetModel }) => targetModel));
    after = page.last;
  }
  assert.deepEqual(listed.toSorted(), names.toSorted());
  assert.equal(pages, 4);
  assert.deepEqual((await Array.fromAsync(listSampledModels(store))).toSorted(), names.toSorted());
});

forEachEngine('thinning keeps the newest rows, and of older ones some of every server', async (store) => {
  const { sink } = openSink(store);
  const on = (serverIp: string): WholeObservation => ({ ...whole, input: { ...input, serverIp } });
  await sink.report([on('rare')]);
  await sink.report(Array.from({ length: 60 }, () => on('busy')));
  await sink.report(Array.from({ length: 5 }, () => on('new')));
  await thinModelSamples(store, 'm', { newest: 10, perServerAndLoadClass: 7, perLoadClass: 40 });
  const servers = (await listSamples(store, 'm', { limit: 100 })).map(({ observation }) => observation.input.serverIp);
  const count = (name: string) => servers.filter((server) => server === name).length;
  assert.deepEqual([count('rare'), count('busy'), count('new')], [1, 7, 5]);
});

forEachEngine('thinning keeps the rows with the latest times, whichever were added last', async (store) => {
  const { sink } = openSink(store);
  const at = (atMs: number): WholeObservation => ({ ...whole, atMs });
  await sink.report(Array.from({ length: 10 }, (_, i) => at(1000 + i)));
  await sink.report(Array.from({ length: 20 }, (_, i) => at(i)));
  await thinModelSamples(store, 'm', { newest: 10, perServerAndLoadClass: 11, perLoadClass: 40 });
  const times = (await listSamples(store, 'm', { limit: 100 })).map(({ observation }) => observation.atMs);
  assert.deepEqual(times, [19, ...Array.from({ length: 10 }, (_, i) => 1000 + i)]);
});

forEachEngine('thinning takes rows that a clock ahead has dated for the oldest', async (store) => {
  const nowMs = whole.atMs + 1000;
  const on = (serverIp: string, atMs: number) => ({ ...whole, atMs, input: { ...input, serverIp } });
  const rows = [
    ...Array.from({ length: 100 }, (_, i) => on('right', nowMs - i)),
    ...Array.from({ length: 1200 }, (_, i) => on('ahead', nowMs + 600_000 + i)),
  ];
  const ids = await store.makeIds(rows.length);
  await store.writeAll(insertSampleStatements(rows.map((observation, i) => ({ id: ids[i]!, observation }))));
  await thinModelSamples(store, 'm', { newest: 100, perServerAndLoadClass: 7, perLoadClass: 20, nowMs });
  const servers = (await listSamples(store, 'm', { limit: 2000 })).map(({ observation }) => observation.input.serverIp);
  const count = (name: string) => servers.filter((server) => server === name).length;
  assert.deepEqual([count('right'), count('ahead')], [100, 7]);
});

forEachEngine('a clock that is a day behind, and that nothing has confirmed yet, thins no new rows', async (store) => {
  const world = withSteadyClock(createStillWorld());
  const keeper = createSampleKeeper({ store, world, log: createLog('silent'), metrics: new Registry() });
  const { newest, perServerAndLoadClass } = SAMPLE_LIMITS;
  const newMs = world.nowMs() + 86_400_000;
  const times = Array.from({ length: newest + 5000 }, (_, i) => (i < newest ? newMs : world.nowMs()) - i);
  const ids = await store.makeIds(times.length);
  await store.writeAll(
    insertSampleStatements(times.map((atMs, i) => ({ id: ids[i]!, observation: { ...whole, atMs } }))),
  );
  await keeper.runRound();
  const kept = await listSamples(store, 'm', { limit: times.length });
  const newRows = kept.filter(({ observation }) => observation.atMs > newMs - newest);
  assert.deepEqual([newRows.length, kept.length <= newest + perServerAndLoadClass], [newest, true]);
});

forEachEngine('a request that is dated ahead counts from the report of its dispatch', async (store) => {
  const { sink, world } = openSink(store);
  const reportedMs = world.nowMs();
  const aheadMs = reportedMs + 600_000;
  await sink.report([{ ...dispatched, atMs: aheadMs }]);
  world.moveMs(120);
  await sink.report([
    { ...firstToken, atMs: aheadMs + 120 },
    { ...whole, atMs: aheadMs },
  ]);
  world.moveMs(500);
  await sink.report([{ ...finished, atMs: aheadMs + 700 }]);
  const samples = await listSamples(store, 'm', { limit: 100, nowMs: world.nowMs() });
  assert.deepEqual(
    samples.map(({ observation }) => [observation.atMs! - reportedMs, observation.ttftMs, observation.tpotMs]),
    [
      [0, firstToken.ttftMs, undefined],
      [0, undefined, finished.tpotMs],
      [120, whole.ttftMs, whole.tpotMs],
    ],
  );
});

forEachEngine(
  'samples are thinned and counted by load, whichever process added them, with learning on or off',
  async (store) => {
    const metrics = new Registry();
    const { sink, world } = openSink(store);
    const keeper = createSampleKeeper({ store, world: withSteadyClock(world), log: createLog('silent'), metrics });
    await sink.report(Array.from({ length: 30 }, () => ({ ...whole, requestId: '' })));
    const busy = { ...input, numRequestWaiting: 9 };
    await sink.report(Array.from({ length: 5 }, () => ({ ...whole, requestId: '', input: busy })));
    assert.deepEqual(await Array.fromAsync(listSampledModels(store)), ['m']);
    await keeper.thin('m');
    const gauge = await metrics.getSingleMetric('trivet_prediction_samples')!.get();
    const counted = gauge.values.map(({ labels, value }) => [labels.model, labels.waiting, value]);
    assert.deepEqual(
      counted.sort((a, b) => Number(a[2]) - Number(b[2])),
      [
        ['m', '8-64', 5],
        ['m', '0-1', 30],
      ],
    );
  },
);

forEachEngine('samples that another process or a command adds are thinned within an hour', async (store) => {
  const world = createStillWorld();
  const keeper = createSampleKeeper({
    store,
    world: withSteadyClock(world),
    log: createLog('silent'),
    metrics: new Registry(),
  });
  const add = async (count: number) => {
    const ids = await store.makeIds(count);
    await store.writeAll(insertSampleStatements(ids.map((id) => ({ id, observation: whole }))));
  };
  const countKept = async () => {
    let rows = 0;
    for await (const page of readSamplePages(store, 'm', { limit: 100_000 })) rows += page.length;
    return rows;
  };
  await add(1000);
  await keeper.runRound();
  await add(20_000);
  await keeper.runRound();
  assert.equal(await countKept(), 21_000);
  world.moveMs(3_600_000);
  await keeper.runRound();
  const { newest, perServerAndLoadClass } = SAMPLE_LIMITS;
  assert.ok((await countKept()) <= newest + perServerAndLoadClass);
});
