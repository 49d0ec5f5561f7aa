import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as endOfTurn } from 'node:timers/promises';
import { createEventPace } from './event-pace.ts';

const COST = 40;

test('work that exceeds a turn of the event loop waits for later turns, in order', async () => {
  const pace = createEventPace();
  const done: number[] = [];
  const all = Array.from({ length: 100 }, async (_, index) => {
    await pace(COST);
    done.push(index);
  });
  await Promise.resolve();
  const inFirstTurn = done.length;
  assert.ok(inFirstTurn > 1 && inFirstTurn < 20, `${inFirstTurn} in a turn`);
  while (done.length < 100) {
    const before = done.length;
    await endOfTurn();
    assert.ok(done.length > before && done.length <= before + inFirstTurn);
  }
  await Promise.all(all);
  assert.deepEqual(
    done,
    done.toSorted((left, right) => left - right),
  );
});
