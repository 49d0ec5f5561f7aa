import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as endOfTurn } from 'node:timers/promises';
import { createReadTurns } from './read-turns.ts';

test('a turn of the event loop reads few of many bodies, and networks have turns', async () => {
  const turns = createReadTurns();
  const read: string[] = [];
  for (let body = 0; body < 100; body++) turns.wait('crowd', () => read.push('crowd'));
  turns.wait('other', () => read.push('other'));
  assert.equal(read.length, 0);
  await endOfTurn();
  assert.equal(read.length, 4);
  assert.equal(read.indexOf('other'), 1);
  while (read.length < 101) {
    const before = read.length;
    await endOfTurn();
    assert.ok(read.length > before && read.length <= before + 4);
  }
});

test('a body that waits again in its turn is read in a later one', async () => {
  const turns = createReadTurns();
  let reads = 0;
  const wait = (): void =>
    turns.wait('one', () => {
      reads += 1;
      if (reads < 3) wait();
    });
  wait();
  await endOfTurn();
  assert.equal(reads, 1);
  await endOfTurn();
  assert.equal(reads, 2);
});
