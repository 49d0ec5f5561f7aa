import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPriorModel } from '../model/model.ts';
import { createLiveModel } from '../online/live-model.ts';
import { addEvents, openGroup } from './sum-groups.ts';
import { SLOT_SUMS } from './sum-layout.ts';

/** Each release added these at the end of what the one before it knew. */
const ADDED_LATER = ['corrections', 'reportDelay', 'learnedCorrections'] as const;

function openSlot() {
  const { learning } = createLiveModel(createPriorModel());
  const slot = openGroup(learning, { kind: 'slot', target: 'tpot', slot: null, server: '' });
  const known = slot.read();
  const values = ADDED_LATER.flatMap((part) => SLOT_SUMS.read(known, part).map((_, i) => i / 10));
  known.set(values, known.length - values.length);
  return { slot, known };
}

for (const part of ADDED_LATER)
  test(`a row of an older release, which does not know ${part}, leaves them as they are`, () => {
    const { slot, known } = openSlot();
    const missing = ADDED_LATER.slice(ADDED_LATER.indexOf(part)).flatMap((each) => SLOT_SUMS.read(known, each)).length;
    const older = new Float32Array(known.length - missing).fill(0.01);
    const after = addEvents(slot, known, { events: 1, certainty: 1, sums: older });
    const [first, ...others] = SLOT_SUMS.read(after, part);
    assert.deepEqual(others, SLOT_SUMS.read(known, part).slice(1));
    assert.equal(first, 0);
    slot.write(after, 1);
    assert.deepEqual([...slot.read()], [...after]);
  });

test('a row of a later release, which knows more, changes what this one knows', () => {
  const { slot, known } = openSlot();
  const later = new Float32Array(known.length + 4).fill(0.01);
  const after = addEvents(slot, known, { events: 1, certainty: 1, sums: later });
  assert.equal(after.length, known.length);
  assert.ok(Math.abs(SLOT_SUMS.read(after, 'learnedCorrections')[1]! - 0.11) < 1e-6);
});
