import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPriorModel, createTargetPrior } from '../model/model.ts';
import { createLiveModel } from '../online/live-model.ts';
import { addObserved } from './shared-group.ts';
import { countEventsOfMeans, createSharedGroupIndex, MAX_EVENT_KEYS } from './shared-group-index.ts';

function openIndex(live = createLiveModel(createPriorModel())) {
  const removed: string[] = [];
  const groups = createSharedGroupIndex(live, ({ name }) => removed.push(name.kind));
  const list = (server: number, podType: string) =>
    groups.listOfEvent({ key: { server, podType: 1 }, podType, target: 'ttft' });
  return { list, groups, removed };
}

test('a pod type that begins with digits is not taken for a part of the number of the server', () => {
  const { list } = openIndex();
  const slotsOf = (server: number, podType: string) => list(server, podType).map(({ name }) => name.slot);
  assert.equal(slotsOf(1, '0x')[1], '0x');
  assert.equal(slotsOf(10, 'x')[1], 'x');
});

test('the lists of events are kept, and of any number of pod types no more than a limit', () => {
  const { list } = openIndex();
  const first = list(1, 'x');
  assert.equal(list(1, 'x'), first);
  for (let i = 0; i <= MAX_EVENT_KEYS; i++) list(1, `pod ${i}`);
  assert.notEqual(list(1, 'x'), first);
});

test('groups of a slot that a swap closes are removed', () => {
  const model = createPriorModel();
  const own = { ...model, slots: new Map([['h200', { ttft: createTargetPrior('ttft') }]]) };
  const live = createLiveModel(own);
  // These keep their slots: they have numbers of their own.
  for (let i = 0; i < 20; i++) live.learning.registerPodType(`first ${i}`);
  const server = live.servers.ensure(Buffer.from('s'));
  const { list, groups, removed } = openIndex(live);
  const slots = list(server, 'h200').filter(({ name }) => name.kind === 'slot' || name.kind === 'server');
  assert.equal(slots.length, 2);
  live.replaceModel({ ...model, id: 'm@2' });
  assert.deepEqual(removed.sort(), ['server', 'slot']);
  for (const { name } of slots) assert.equal(groups.find(name), undefined);
});

test('all slots that a swap closes are reported at once, so that the groups are walked once', () => {
  const model = createPriorModel();
  const podTypes = ['h20', 'h100', 'h200'];
  const own = { ...model, slots: new Map(podTypes.map((podType) => [podType, { ttft: createTargetPrior('ttft') }])) };
  const live = createLiveModel(own);
  // These keep their slots: they have numbers of their own.
  for (let i = 0; i < 20; i++) live.learning.registerPodType(`first ${i}`);
  const server = live.servers.ensure(Buffer.from('s'));
  const { list, removed } = openIndex(live);
  for (const podType of podTypes) list(server, podType);
  const closed: string[][] = [];
  live.learning.onCloseSlots((keys) => closed.push([...keys].sort()));
  live.replaceModel({ ...model, id: 'm@2' });
  assert.deepEqual(closed, [podTypes.toSorted()]);
  assert.deepEqual(removed.sort(), ['server', 'server', 'server', 'slot', 'slot', 'slot']);
  live.replaceModel({ ...model, id: 'm@3' });
  assert.equal(closed.length, 1, 'a swap that closes none reports none');
});

test('servers that are forgotten remove no group of an index that was closed', () => {
  const live = createLiveModel(createPriorModel());
  const server = live.servers.ensure(Buffer.from('s'));
  const [closed, open] = [openIndex(live), openIndex(live)];
  for (const { list } of [closed, open]) list(server, 'x');
  closed.groups.close();
  for (let i = 0; i < live.servers.capacity; i++) live.servers.ensure(Buffer.from(`other ${i}`));
  assert.deepEqual(open.removed.sort(), ['server', 'server means']);
  assert.deepEqual(closed.removed, []);
});

test('means are counted once for each owner, however many events changed them', () => {
  const live = createLiveModel(createPriorModel());
  const servers = ['a', 'b', 'unknown'].map((name) =>
    name === 'unknown' ? -1 : live.servers.ensure(Buffer.from(name)),
  );
  const events = servers.flatMap((server, i) =>
    Array.from({ length: 3 + i }, () => ({
      key: { server, podType: i },
      podType: `pod ${i}`,
      target: 'ttft' as const,
    })),
  );
  const counted = [...countEventsOfMeans(live.learning, events)].map(([name, count]) => [
    name.kind,
    name.slot ?? name.server,
    count,
  ]);
  assert.deepEqual(counted, [
    ['model means', '', 12],
    ['pod type means', '', 3],
    ['pod type means', 'pod 1', 4],
    ['pod type means', 'pod 2', 5],
    ['server means', 'a', 3],
    ['server means', 'b', 4],
  ]);
  assert.deepEqual([...countEventsOfMeans(live.learning, [])], []);
});

test('means that begin again stay in the index without events', () => {
  const live = createLiveModel(createPriorModel());
  const { groups, list, removed } = openIndex(live);
  const listed = list(live.servers.ensure(Buffer.from('s')), 'x');
  for (const each of listed) addObserved(each, 1);
  groups.resetMeans('tpot');
  assert.equal(removed.length, 0);
  groups.resetMeans('ttft');
  assert.deepEqual(removed.sort(), ['model means', 'pod type means', 'server means']);
  const pending = listed.filter(({ unsent }) => unsent.events > 0).map(({ name }) => name.kind);
  assert.deepEqual(pending, ['slot', 'server']);
  for (const each of listed) assert.equal(groups.find(each.name), each);
});
