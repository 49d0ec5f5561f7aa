import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as endOfTurn } from 'node:timers/promises';
import { createNetworkTurns } from './network-turns.ts';

test('few of many that wait go on in a turn of the event loop, and networks have turns', async () => {
  const turns = createNetworkTurns(4);
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

test('one that waits again in its turn goes on in a later one', async () => {
  const turns = createNetworkTurns(4);
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

test('those that have gone take no turns, and are forgotten', async () => {
  const turns = createNetworkTurns(1);
  const gone: number[] = [];
  const wentOn: string[] = [];
  const isGone = (index: number) => (): boolean => {
    gone.push(index);
    return true;
  };
  for (let index = 0; index < 100; index++) turns.wait('crowd', () => wentOn.push('gone'), isGone(index));
  turns.wait('crowd', () => wentOn.push('crowd'));
  for (let index = 0; index < 100; index++) turns.wait('left', () => wentOn.push('gone'), isGone(index));
  turns.wait('other', () => wentOn.push('other'));
  await endOfTurn();
  assert.deepEqual([wentOn, gone.length], [['crowd'], 100]);
  await endOfTurn();
  assert.deepEqual([wentOn, gone.length], [['crowd', 'other'], 200]);
});
