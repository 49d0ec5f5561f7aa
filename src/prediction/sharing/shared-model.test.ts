import assert from 'node:assert/strict';
import { test } from 'node:test';
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
