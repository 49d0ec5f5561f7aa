import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Failure } from '../../errors.ts';
import { createHashQueue, type HashCaller } from './password-hash-queue.ts';

const LIMITS = { running: 1, waiting: 4, waitingOfOne: 3 };
const stranger = (key: string): HashCaller => ({ key, isKnown: false });
const known = (key: string): HashCaller => ({ key, isKnown: true });

/** A queue whose only running place is taken until `open` is called; `outcomes` lists which entries ran or were refused. */
function createBusyQueue() {
  const queue = createHashQueue(LIMITS);
  const opened = Promise.withResolvers<void>();
  const outcomes: string[] = [];
  const all: Promise<unknown>[] = [queue.run(stranger('first'), () => opened.promise)];
  const submit = (caller: HashCaller, name: string) => {
    const run = queue.run(caller, async () => void outcomes.push(name));
    all.push(
      run.catch((error: Failure) => outcomes.push(`${name}: ${error.code}, ${error.details.retryAfterSeconds}`)),
    );
  };
  const finish = async () => {
    opened.resolve();
    await Promise.all(all);
    return outcomes;
  };
  return { queue, submit, finish };
}

test('callers take turns, and each keeps its order', async () => {
  const { submit, finish } = createBusyQueue();
  for (const name of ['a1', 'a2', 'a3']) submit(stranger('a'), name);
  submit(stranger('b'), 'b1');
  assert.deepEqual(await finish(), ['a1', 'b1', 'a2', 'a3']);
});

test('one caller has a bounded number of places, and is refused with a time to come back', async () => {
  const { submit, finish, queue } = createBusyQueue();
  for (const name of ['a1', 'a2', 'a3', 'a4']) submit(stranger('a'), name);
  assert.throws(() => queue.check(stranger('a')), { code: 'unavailable' });
  queue.check(stranger('b'));
  assert.deepEqual(await finish(), ['a4: unavailable, 2', 'a1', 'a2', 'a3']);
});

test('a full queue drops the newest entry of the caller with the most for a caller with fewer', async () => {
  const { submit, finish } = createBusyQueue();
  for (const name of ['a1', 'a2', 'a3']) submit(stranger('a'), name);
  submit(stranger('b'), 'b1');
  submit(stranger('c'), 'c1');
  assert.deepEqual(await finish(), ['a3: unavailable, 2', 'a1', 'b1', 'c1', 'a2']);
});

test('a flood of callers with one each is bounded, and no known device waits behind it', async () => {
  const { submit, finish } = createBusyQueue();
  for (let number = 1; number <= 100; number += 1) submit(stranger(`s${number}`), `s${number}`);
  submit(known('device'), 'device');
  const outcomes = await finish();
  const ran = outcomes.filter((outcome) => !outcome.includes(':'));
  assert.equal(ran.length, 4);
  assert.equal(ran[0], 'device');
});

test('known callers do not shut strangers out', async () => {
  const { submit, finish } = createBusyQueue();
  for (const name of ['k1', 'k2', 'k3']) submit(known('k'), name);
  submit(stranger('a'), 'a1');
  const outcomes = await finish();
  assert.ok(outcomes.indexOf('a1') < outcomes.indexOf('k3'), outcomes.join());
});

test('a failure of the work gives the place back', async () => {
  const queue = createHashQueue(LIMITS);
  await assert.rejects(
    queue.run(stranger('a'), () => Promise.reject(new Error('broken'))),
    /broken/,
  );
  assert.equal(await queue.run(stranger('a'), async () => 7), 7);
});
