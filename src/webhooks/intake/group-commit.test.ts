import assert from 'node:assert/strict';
import { test } from 'node:test';
import { measureInWorker } from '../../../test/support/store/old-memory-cases.ts';
import { Failure } from '../../errors.ts';
import { createGroupCommit } from './group-commit.ts';

/** Items are named after their owner: `a1`, `a2`, `b1`. */
function startGroup(commit: (items: readonly string[]) => readonly (string | undefined)[], maxItems = 3) {
  const commits: string[] = [];
  const group = createGroupCommit<string, string>({
    maxItems,
    maxWaitingBytes: 100,
    maxBytesOfAll: 400,
    smallBytes: 60,
    bytesOf: (item) => item.length,
    ownerOf: (item) => item.slice(0, 1),
    commit: async (items) => {
      commits.push(items.join(' '));
      return commit(items);
    },
  });
  return {
    commits,
    submitAll: (items: readonly string[]) => Promise.allSettled(items.map((one) => group.submit(one))),
  };
}

test('owners take turns, and each has its own in their order', async () => {
  const { commits, submitAll } = startGroup((items) => items);
  await submitAll(['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1']);
  assert.deepEqual(commits, ['a1 b1 c1', 'a2 b2 a3', 'a4']);
});

test('an item that a commit leaves out is first in the next one', async () => {
  const { commits, submitAll } = startGroup((items) => items.slice(0, 1));
  const results = await submitAll(['a1', 'a2', 'b1']);
  assert.deepEqual(commits, ['a1 b1 a2', 'b1 a2', 'a2']);
  for (const [index, item] of ['a1', 'a2', 'b1'].entries())
    assert.deepEqual(results[index], { status: 'fulfilled', value: item });
});

test('an item that a commit leaves out does not wait while others keep arriving', async () => {
  const held = Promise.withResolvers<void>();
  const commits: string[] = [];
  const group = createGroupCommit<string, string>({
    maxItems: 3,
    maxWaitingBytes: 100,
    maxBytesOfAll: 400,
    smallBytes: 60,
    bytesOf: (item) => item.length,
    ownerOf: (item) => item.slice(0, 1),
    commit: async (items) => {
      commits.push(items.join(' '));
      if (commits.length === 1) await held.promise;
      return items.slice(0, 1);
    },
  });
  const first = ['a1', 'b1'].map((item) => group.submit(item));
  await new Promise((resolve) => setImmediate(resolve));
  const later = ['c1', 'd1'].map((item) => group.submit(item));
  held.resolve();
  await Promise.all([...first, ...later]);
  assert.deepEqual(commits, ['a1 b1', 'b1 c1 d1', 'c1 d1', 'd1']);
});

test('an item that a commit leaves out does not delay the items after it', async () => {
  // Each item of `a` fits only alone.
  const fit = (items: readonly string[]) =>
    items.map((item, at) => (at > 0 && item.startsWith('a') ? undefined : item));
  const alone = (items: readonly string[]) => (items[0]?.startsWith('a') ? items.slice(0, 1) : fit(items));
  const { commits, submitAll } = startGroup(alone, 10);
  await submitAll(['b1', 'a1', 'a2', 'b2', 'b3']);
  assert.deepEqual(commits, ['b1 a1 b2 a2 b3', 'a1 a2', 'a2']);
});

test('items above the limit of one owner are refused for now, those of others are not, and stored items make room', async () => {
  const { submitAll } = startGroup((items) => items, 64);
  const long = (owner: string, length: number) => owner.padEnd(length, 'x');
  const results = await submitAll([long('a', 60), long('a', 41), long('b', 60), long('a', 40), long('c', 500)]);
  assert.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled', 'fulfilled', 'fulfilled'],
  );
  const [, refused] = results;
  assert.equal(refused?.status === 'rejected' && refused.reason.code, 'unavailable');
  assert.equal(refused?.status === 'rejected' && refused.reason.details.retryAfterSeconds, 1);
  assert.equal((await submitAll([long('a', 41)]))[0]?.status, 'fulfilled');
});

test('many owners share the limit of all waiting bytes, and each may have one item', async () => {
  const { submitAll } = startGroup((items) => items, 64);
  const owners = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
  const first = owners.map((owner) => owner.padEnd(60, 'x'));
  // 50 of 400 bytes for each of eight: `a` has 60 already.
  const results = await submitAll([...first, 'a2']);
  assert.deepEqual(
    results.map(({ status }) => status),
    [...owners.map(() => 'fulfilled'), 'rejected'],
  );
});

test('once the bytes of all owners are used up, an owner with nothing waiting may have a small item only', async () => {
  const { submitAll } = startGroup((items) => items, 64);
  const owners = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
  const results = await submitAll([...owners.map((owner) => owner.padEnd(90, 'x')), 'i'.padEnd(60, 'x')]);
  assert.deepEqual(
    results.map(({ status }) => status === 'fulfilled'),
    [true, true, true, true, true, false, false, false, true],
  );
  const refused = results.find(({ status }) => status === 'rejected');
  assert.equal(refused?.status === 'rejected' && refused.reason.details.retryAfterSeconds, 1);
  assert.deepEqual((await submitAll(['h'.padEnd(90, 'x')]))[0]?.status, 'fulfilled', 'what was stored makes room');
});

test('after a commit fails each item commits alone, and only the one at fault is refused', async () => {
  const { commits, submitAll } = startGroup((items) => {
    if (items.includes('a1')) throw new Failure('conflict', 'Wrong');
    return items;
  });
  const results = await submitAll(['a1', 'b1', 'a2']);
  assert.deepEqual(
    results.map(({ status }) => status),
    ['rejected', 'fulfilled', 'fulfilled'],
  );
  assert.deepEqual(commits[0], 'a1 b1 a2');
  assert.deepEqual(commits.slice(1).toSorted(), ['a1', 'a2', 'b1']);
});

test('all items of a commit are refused while the database is away', async () => {
  const { commits, submitAll } = startGroup(() => {
    throw new Failure('unavailable', 'Away');
  });
  const results = await submitAll(['a1', 'b1']);
  assert.deepEqual(
    results.map(({ status }) => status),
    ['rejected', 'rejected'],
  );
  assert.equal(commits.length, 1);
});

test('items leave little in old memory once they are committed', async () => {
  const bytes = await measureInWorker('group commit');
  assert.ok(bytes < 50, `${bytes} bytes an item`);
});
