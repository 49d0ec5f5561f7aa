import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPriorModel } from '../model/model.ts';
import { createLiveModel } from '../online/live-model.ts';
import { addEvents, openGroup } from './sum-groups.ts';
import { readQuantiles } from './sum-layout.ts';

test('a row of an older release, which knows no corrections of slots, leaves them as they are', () => {
  const { learning } = createLiveModel(createPriorModel());
  const slot = openGroup(learning, { kind: 'slot', target: 'tpot', slot: null, server: '' });
  const known = slot.read();
  known.set([0, 0.1, 0.2, 0.3], known.length - 5);
  const older = new Float32Array(known.length - 5).fill(0.01);
  const after = addEvents(slot, known, { events: 1, certainty: 1, sums: older });
  assert.deepEqual(readQuantiles(after).corrections, [0, 0.1, 0.2, 0.3]);
  slot.write(after, 1);
  assert.deepEqual([...slot.read()], [...after]);
});
