import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fillSteadyLoad, modelOfMedian } from '../../../test/support/prediction/shared-noise.ts';
import { createPriorModel } from '../model/model.ts';
import { createLiveModel, type LiveModel } from '../online/live-model.ts';
import type { GroupEntry } from './shared-group.ts';
import { createSharedModel } from './shared-model.ts';

const prior = createPriorModel();
const [first, second] = ['m@1', 'm@2'].map((id) => ({ ...prior, id })) as [typeof prior, typeof prior];
/** More than one step of `apply`. */
const SERVERS = Array.from({ length: 300 }, (_, i) => `10.0.${i >> 8}.${i & 255}`);
const entries = SERVERS.map(
  (server): GroupEntry => ({
    name: { kind: 'server means', target: 'ttft', slot: null, server },
    events: 1,
    certainty: 1,
    sums: Float32Array.of(1, 0.5),
    residuals: undefined,
  }),
);

function readMeans({ learning, servers }: LiveModel): number[][] {
  return SERVERS.map((server) => {
    const number = servers.ensure(Buffer.from(server));
    return Array.from(learning.tracker.readTarget({ kind: 'server', number }, 'ttft'));
  });
}

/**
 * Applies the means of another process that serves `id`, and swaps from the first to the second version after so many steps. A
 * report comes at once, or after the last step.
 */
function applyAroundSwap(id: string, stepsBefore: number, comesLate = false): number[][] {
  const live = createLiveModel(first);
  const shared = createSharedModel(live, { monotonicMs: () => 0 });
  const version = createLiveModel({ ...prior, id }).learning.basisOf('ttft');
  const steps = shared.apply({ version, entries }, false)[Symbol.iterator]();
  for (let step = 0; step < stepsBefore; step++) steps.next();
  live.replaceModel(second);
  const key = { server: live.servers.ensure(Buffer.from('another')), podType: 0 };
  const report = () => shared.beforeObserve({ key, podType: '', target: 'ttft' }, 1);
  if (!comesLate) report();
  while (steps.next().done !== true);
  if (comesLate) report();
  return readMeans(live);
}

test('means of another process count once, at whichever step of apply() their version is swapped in', () => {
  const once = applyAroundSwap('m@2', 0);
  assert.notDeepEqual(once, readMeans(createLiveModel(second)));
  for (const steps of [1, 2])
    for (const comesLate of [false, true]) assert.deepEqual(applyAroundSwap('m@2', steps, comesLate), once);
});

test('means of a version that is swapped out at a step of apply() count for no later one', () => {
  const none = readMeans(createLiveModel(second));
  for (const steps of [0, 1, 2])
    for (const comesLate of [false, true]) assert.deepEqual(applyAroundSwap('m@1', steps, comesLate), none);
});

function openProcess() {
  const live = createLiveModel(modelOfMedian('m@1'));
  const shared = createSharedModel(live, { monotonicMs: () => 0 });
  const forecast = (server: string) => live.forecast(fillSteadyLoad(), '', Buffer.from(server));
  return {
    live,
    shared,
    forecast,
    observe(server: string, observedMs: number) {
      const given = forecast(server);
      shared.beforeObserve({ key: given.key, podType: '', target: 'tpot' }, 1);
      live.observe(given, 'tpot', { observedMs });
    },
  };
}

type Process = ReturnType<typeof openProcess>;

/** Each appends its entries, in this order, and both apply them. */
function exchange(appending: readonly Process[], all: readonly Process[]): void {
  for (const from of appending)
    for (const entries of from.shared.take(4000))
      for (const to of all) for (const _ of to.shared.apply(entries, to === from));
}

test('a promotion does not bring back a fault of a server that is over, as another process observed', () => {
  for (const isFirst of [true, false]) {
    const [slow, well] = [openProcess(), openProcess()];
    const all = [slow, well];
    const usualMs = slow.forecast('another').tpot.mixtureMs;
    for (let i = 0; i < 20; i++) slow.observe('s', 3 * usualMs);
    exchange(all, all);
    for (let i = 0; i < 1500; i++) {
      slow.observe(`other ${i % 10}`, usualMs);
      if (i < 60) well.observe('s', usualMs);
      if (i % 20 === 0) exchange(all, all);
    }
    exchange(all, all);
    for (const { live } of all) live.replaceModel(modelOfMedian('m@2'));
    exchange(isFirst ? all : [well, slow], all);
    exchange(all, all);
    for (const { forecast } of all) {
      const ratio = forecast('s').tpot.mixtureMs / usualMs;
      assert.ok(Math.abs(ratio - 1) < 0.1, `${ratio} times the usual time`);
    }
  }
});

test('times that were replayed at a promotion do not make other processes forget quiet servers at the next one', () => {
  const all = [openProcess(), openProcess()];
  const usualMs = all[0]!.forecast('another').tpot.mixtureMs;
  for (const each of all) for (let i = 0; i < 10; i++) each.observe('quiet', 3 * usualMs);
  for (const each of all) for (let i = 0; i < 1500; i++) each.observe(`other ${i % 10}`, usualMs);
  exchange(all, all);
  for (const id of ['m@2', 'm@3', 'm@4']) {
    for (const { live } of all) live.replaceModel(modelOfMedian(id));
    exchange(all, all);
    exchange(all, all);
  }
  for (const { forecast } of all) {
    const ratio = forecast('quiet').tpot.mixtureMs / usualMs;
    assert.ok(ratio > 2.5, `${ratio} times the usual time`);
  }
});
