import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPriorModel } from '../model/model.ts';
import { createLiveModel } from '../online/live-model.ts';
import { createSharedGroupIndex, MAX_EVENT_KEYS } from './shared-group-index.ts';

function openIndex() {
  const groups = createSharedGroupIndex(createLiveModel(createPriorModel()), () => {});
  const list = (server: number, podType: string) =>
    groups.listOfEvent({ key: { server, podType: 1 }, podType, target: 'ttft' });
  return { list };
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
