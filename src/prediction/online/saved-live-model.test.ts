import assert from 'node:assert/strict';
import { test } from 'node:test';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { createPredictColumns, METRIC_COLUMNS } from '../schema/columns.ts';
import { DEFAULT_TRAINING, trainModel } from '../training/train-model.ts';
import { createLiveModel, type LiveModel } from './live-model.ts';
import type { SavedLiveModel, SavedTarget } from './saved-live-model.ts';

const trees = { ...DEFAULT_TRAINING.trees, trees: 20 };
const model = trainModel('m@1', tabulate(observePool({ rows: 400 })), { ...DEFAULT_TRAINING, trees });

/** Every third time is three times as long as the model learned, so that quantiles are missed. */
function observeMisses(live: LiveModel): void {
  const columns = createPredictColumns(1);
  columns.count = 1;
  for (const [i, { input, ttftMs, tpotMs }] of observePool({ rows: 100, seed: 4 }).entries()) {
    for (const name of METRIC_COLUMNS) columns[name][0] = input[name];
    const forecast = live.forecast(columns, input.podType, Buffer.from(input.serverIp));
    const factor = i % 3 === 0 ? 3 : 1;
    live.observe(forecast, 'ttft', { observedMs: factor * ttftMs! });
    live.observe(forecast, 'tpot', { observedMs: factor * tpotMs! });
  }
}

/** As the state is stored and read. */
function saveAsJson(live: LiveModel): SavedLiveModel {
  const saved = live.save();
  return JSON.parse(JSON.stringify({ ...saved, servers: [...saved.servers] })) as SavedLiveModel;
}

function readLearnedCorrections({ learning }: LiveModel): number[][] {
  return [...learning.slots.values()].flatMap(({ ttft, tpot }) =>
    [ttft, tpot].map(({ intervals }) => intervals.ofLearned.save()),
  );
}

function leaveOutCorrections(saved: SavedTarget): SavedTarget {
  const { learnedCorrections, ...known } = saved;
  assert.notEqual(learnedCorrections, undefined);
  return known;
}

test('corrections of learned quantiles are kept over a restart, and 0 in a state that an older release saved', () => {
  const before = createLiveModel(model);
  observeMisses(before);
  const corrections = readLearnedCorrections(before);
  assert.ok(corrections.flat().some((correction) => correction > 0.05));
  const saved = saveAsJson(before);
  const after = createLiveModel(model);
  after.restore(saved);
  assert.deepEqual(readLearnedCorrections(after), corrections);
  const slots = saved.slots.map(({ podType, ttft, tpot }) => ({
    podType,
    ttft: leaveOutCorrections(ttft),
    tpot: leaveOutCorrections(tpot),
  }));
  after.restore({ ...saved, slots });
  assert.deepEqual(
    readLearnedCorrections(after),
    corrections.map((each) => each.map(() => 0)),
  );
});

test('a state that is restored while its process serves, even twice, adds no report that the process has', () => {
  const saving = createLiveModel(model);
  observeMisses(saving);
  const saved = saveAsJson(saving);
  const listRecent = ({ learning }: LiveModel) =>
    learning.recent.list().map(({ target, observedMs }) => [target, observedMs]);
  const restarted = createLiveModel(model);
  for (const live of [saving, restarted]) {
    const before = listRecent(saving);
    for (let restores = 0; restores < 2; restores++) live.restore(saved);
    assert.deepEqual(listRecent(live), before);
  }
});

test('a server that takes the number of a forgotten one while the state is written is not saved with its reports', () => {
  const live = createLiveModel(model);
  const columns = createPredictColumns(1);
  columns.count = 1;
  const observe = (server: string, observedMs: number) =>
    live.observe(live.forecast(columns, '', Buffer.from(server)), 'ttft', { observedMs });
  // Each server has a time of its own.
  for (let i = 0; i < live.servers.capacity; i++) observe(String(i), 1000 + i);
  const saved: string[] = [];
  for (const { address, rows = [] } of live.save().servers) {
    if (saved.length === 0) observe('another', 1);
    saved.push(address);
    for (const { times } of rows) assert.deepEqual(times, { ttft: 1000 + Number(address) });
  }
  assert.ok(saved.includes('another'));
});
