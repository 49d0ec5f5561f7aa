/** Reads of sockets do not trigger collections of the whole heap. */
import assert from 'node:assert/strict';
import { constants, PerformanceObserver } from 'node:perf_hooks';
import { test } from 'node:test';
import { setImmediate as endOfTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { type CountGarbage, createGarbageCounter, openCollector } from './garbage.ts';

const MEBIBYTE = 1_048_576;

// A thread of V8 frees the reads that a collection found dead. Until it gets a core, they still count.
setFlagsFromString('--no-concurrent-array-buffer-sweeping');

test('the young generation is collected once in a turn, when enough bytes were counted since the last time', async () => {
  let collections = 0;
  const count = createGarbageCounter(() => collections++, 100);
  count(99);
  await endOfTurn();
  assert.equal(collections, 0);
  count(1);
  count(500);
  assert.equal(collections, 0);
  await endOfTurn();
  assert.equal(collections, 1);
  count(99);
  await endOfTurn();
  assert.equal(collections, 1);
});

test('400 MB that are read and counted bring about a quarter of the collections of the whole heap at most', async () => {
  const { collectAll, collectYoung } = openCollector();
  collectAll();
  const counted = await countCollections(createGarbageCounter(collectYoung));
  collectAll();
  const others = await countCollections(() => {});
  assert.ok(counted.young > 10, `${counted.young} of the young generation`);
  assert.ok(counted.whole <= others.whole / 4, `${counted.whole} of the whole heap, ${others.whole} without counting`);
});

async function countCollections(
  countGarbage: CountGarbage,
): Promise<{ readonly young: number; readonly whole: number }> {
  const counts = { young: 0, whole: 0 };
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries())
      if ((entry as { detail?: { kind?: number } }).detail?.kind === constants.NODE_PERFORMANCE_GC_MINOR)
        counts.young++;
      else counts.whole++;
  });
  observer.observe({ entryTypes: ['gc'] });
  for (let turn = 0; turn < 400; turn++) {
    for (let read = 0; read < 16; read++) countGarbage(Buffer.allocUnsafeSlow(MEBIBYTE / 16).length);
    await endOfTurn();
  }
  await endOfTurn();
  observer.disconnect();
  return counts;
}
