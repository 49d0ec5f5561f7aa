import assert from 'node:assert/strict';
import { test } from 'node:test';
import { observePool, type PoolOptions, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { createLiveModel, type LiveModel } from '../online/live-model.ts';
import { createPredictColumns, METRIC_COLUMNS } from '../schema/columns.ts';
import type { Observation } from '../schema/observation.ts';
import { observedTimes } from '../schema/observation-table.ts';
import { readLiveState, writeLiveState } from '../sharing/live-state-store.ts';
import { trainModel } from '../training/train-model.ts';
import { decodeModel, encodeModel } from './model-codec.ts';
import { fitServerOffsets, readServerOffset, type ServerOffsets } from './server-offsets.ts';

function fitOffsets(rows: readonly Observation[]): ServerOffsets {
  const table = tabulate(rows);
  const observed = observedTimes(table, 'tpot').slice(0, table.count);
  return fitServerOffsets({ target: 'tpot', table, observed });
}

const factorOf = (offsets: ServerOffsets, server: number) =>
  Math.exp(readServerOffset(offsets, `10.0.0.${server}`, ''));

test('servers three times apart get offsets three times apart, and one that was not seen the offset of the pool', () => {
  const offsets = fitOffsets(observePool({ rows: 600, servers: [1, 3] }));
  assert.ok(Math.abs(factorOf(offsets, 1) / factorOf(offsets, 0) - 3) < 0.15);
  assert.equal(factorOf(offsets, 9), 1);
});

const alike: [title: string, pool: PoolOptions][] = [
  ['one server', { rows: 600, servers: [3] }],
  ['fewer rows than say anything', { rows: 39, servers: [1, 3] }],
];
for (const [title, pool] of alike)
  test(`${title} has no offsets`, () => assert.equal(fitOffsets(observePool(pool)).servers.size, 0));

test('offsets of similar servers shrink to nearly 0', () => {
  for (const seed of [1, 2, 3, 4, 5]) {
    const offsets = fitOffsets(observePool({ rows: 800, seed, servers: [1, 1, 1, 1] }));
    for (const offset of offsets.servers.values()) assert.ok(Math.abs(offset) < 0.02, `seed ${seed}: ${offset}`);
  }
});

test('a server with few rows among scattered ones stays nearer to the pool than one with many', () => {
  const scattered = (row: Observation, i: number) => ({ ...row, tpotMs: row.tpotMs! * 2 ** ((i % 7) / 3 - 1) });
  const many = observePool({ rows: 800, servers: [1, 1, 1, 2] }).map(scattered);
  const few = observePool({ rows: 3, seed: 7, servers: [2] }).map((row) => ({
    ...row,
    input: { ...row.input, serverIp: '10.0.0.4' },
  }));
  const offsets = fitOffsets([...few, ...many]);
  assert.ok(factorOf(offsets, 3) > 1.4);
  assert.ok(factorOf(offsets, 4) < 1 + 0.8 * (factorOf(offsets, 3) - 1), `${factorOf(offsets, 4)}`);
});

test('concatenated recordings have offsets, although the last servers appear only at the end', () => {
  const recordings = [1, 4, 4, 4, 2].flatMap((slowness, server) =>
    observePool({ rows: 150, seed: server + 1, servers: [slowness] }).map((row) => ({
      ...row,
      input: { ...row.input, serverIp: `10.0.0.${server}` },
    })),
  );
  const offsets = fitOffsets(recordings);
  assert.ok(Math.abs(factorOf(offsets, 1) / factorOf(offsets, 0) - 4) < 0.4);
});

test('offsets that the newest rows contradict are not kept', () => {
  const before = observePool({ rows: 480, servers: [1, 2] });
  const after = observePool({ rows: 120, seed: 2, servers: [2, 1] });
  assert.equal(fitOffsets([...before, ...after]).servers.size, 0);
});

test('a server that was not seen has the offset of its pod type', () => {
  const decode = observePool({ rows: 300, servers: [3], podType: 'decode' });
  const prefill = observePool({ rows: 300, servers: [1, 1.2], podType: 'prefill' });
  const rows = [...decode, ...prefill].map((row, i) => ({
    ...row,
    input: { ...row.input, serverIp: `${row.input.podType}-${i % 2}` },
  }));
  const offsets = fitOffsets(rows.sort((a, b) => a.atMs! - b.atMs!));
  const [slow, fast] = ['decode', 'prefill'].map((podType) => readServerOffset(offsets, 'new', podType));
  assert.ok(Math.abs(Math.exp(slow! - fast!) - 3 / 1.1) < 0.3);
});

/** Each recording has one server, of a kind that is slower by a given factor. */
const recordings = [
  { run: 'a', kind: 'fast', slowness: 1 },
  { run: 'b', kind: 'slow', slowness: 3 },
  { run: 'c', kind: 'fast', slowness: 1.1 },
  { run: 'd', kind: 'slow', slowness: 2.9 },
].flatMap(({ run, kind, slowness }, seed) =>
  observePool({ rows: 150, seed: seed + 1, servers: [slowness] }).map((row) => ({
    ...row,
    input: { ...row.input, serverIp: `${run}/${kind}` },
  })),
);

test('a server that was not seen has the offset of those of the same name in other recordings', () => {
  const offsets = fitOffsets(recordings);
  const [slow, fast, other] = ['e/slow', 'e/fast', 'e/other'].map((server) =>
    Math.exp(readServerOffset(offsets, server, '')),
  );
  assert.ok(Math.abs(slow! / fast! - 2.8) < 0.3, `${slow! / fast!}`);
  assert.equal(other, 1);
});

test('a model answers at the offset of a kind, and the same once it was written and read', () => {
  const model = trainModel('m@1', tabulate(recordings));
  const predict = (of: typeof model, server: string) => {
    const live = createLiveModel(of);
    live.servers.ensure(Buffer.from(server));
    return predictTpot(live, recordings[0]!, server);
  };
  const [slow, fast] = ['e/slow', 'e/fast'].map((server) => predict(model, server));
  assert.ok(Math.abs(slow! / fast! - 2.8) < 0.3, `${slow! / fast!}`);
  assert.equal(predict(decodeModel(encodeModel(model)), 'e/slow'), slow);
});

function predictTpot(live: LiveModel, { input }: Observation, server: string): number {
  const columns = createPredictColumns(1);
  columns.count = 1;
  columns.podTypes.push(input.podType);
  for (const name of METRIC_COLUMNS) columns[name][0] = input[name];
  columns.source = Buffer.from(server);
  columns.serverIpLength[0] = columns.source.length;
  const predicted = { ttftMs: new Float64Array(1), tpotMs: new Float64Array(1) };
  live.predict(columns, predicted);
  return predicted.tpotMs[0]!;
}

const pool = observePool({ rows: 900, servers: [1, 3] });

test('a model answers for each server at its offset, before any report, and the same once it was written and read', () => {
  const model = trainModel('m@1', tabulate(pool));
  const live = createLiveModel(model);
  const back = createLiveModel(decodeModel(encodeModel(model)));
  const [row] = pool;
  const [fast, slow, unseen] = ['10.0.0.0', '10.0.0.1', '10.0.0.2'].map((server) => predictTpot(live, row!, server));
  assert.ok(Math.abs(slow! / fast! - 3) < 0.2, `${slow} against ${fast}`);
  assert.ok(unseen! > fast! && unseen! < slow!);
  assert.deepEqual(
    [predictTpot(back, row!, '10.0.0.0'), predictTpot(back, row!, '10.0.0.1'), predictTpot(back, row!, 'unseen')],
    [fast, slow, unseen],
  );
});

test('a load that slows down only one kind of server is learned for that kind', () => {
  const isFull = ({ input }: Observation) => input.numRequestRunning > 24;
  const rows = observePool({ rows: 1500, servers: [1, 3] }).map((row) => ({
    ...row,
    tpotMs: row.tpotMs! * (isFull(row) && row.input.serverIp === '10.0.0.1' ? 2 : 1),
  }));
  const live = createLiveModel(trainModel('m@1', tabulate(rows)));
  const ratioAt = (row: Observation) => predictTpot(live, row, '10.0.0.1') / predictTpot(live, row, '10.0.0.0');
  const [full, free] = [rows.find(isFull)!, rows.find((row) => row.input.numRequestRunning === 15)!].map(ratioAt);
  assert.ok(Math.abs(full! / 6 - 1) < 0.15, `${full} instead of 6 when full`);
  assert.ok(Math.abs(free! / 3 - 1) < 0.15, `${free} instead of 3 else`);
});

test('what was learned about one server is restored after a restart, quantiles included', async () => {
  const model = { ...trainModel('m@1', tabulate(pool)), statistic: 'p90' as const };
  const live = createLiveModel(model);
  for (const row of pool.slice(0, 200)) {
    const forecast = live.forecast(tabulate([row]), '', Buffer.from(row.input.serverIp));
    const slowness = row.input.serverIp === '10.0.0.1' ? 2 : 1;
    live.observe(forecast, 'tpot', { observedMs: slowness * row.tpotMs! });
  }
  const back = createLiveModel(model);
  back.restore(await readLiveState(await writeLiveState(live.save())));
  const fresh = createLiveModel(model);
  for (const server of ['10.0.0.0', '10.0.0.1']) {
    const [before, after] = [live, back].map((served) => predictTpot(served, pool[0]!, server));
    assert.ok(Math.abs(after! / before! - 1) < 0.01, `${server}: ${after} after, ${before} before`);
  }
  assert.ok(predictTpot(back, pool[0]!, '10.0.0.1') > 1.5 * predictTpot(fresh, pool[0]!, '10.0.0.1'));
});

test('a new version brings its offsets, and reported times are learned relative to them', () => {
  const live = createLiveModel(trainModel('m@1', tabulate(observePool({ rows: 300 }))));
  const [row] = pool;
  const before = predictTpot(live, row!, '10.0.0.1');
  live.replaceModel(trainModel('m@2', tabulate(pool)));
  const adjusted = predictTpot(live, row!, '10.0.0.1');
  assert.ok(adjusted > 2 * before);
  const columns = tabulate([row!]);
  for (let i = 0; i < 40; i++) {
    const forecast = live.forecast(columns, '', Buffer.from('10.0.0.1'));
    live.observe(forecast, 'tpot', { observedMs: forecast.tpot.medianMs });
  }
  assert.ok(Math.abs(predictTpot(live, row!, '10.0.0.1') / adjusted - 1) < 0.05);
});
