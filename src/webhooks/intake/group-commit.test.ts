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

test('what a commit leaves comes first in the next one', async () => {
  const { commits, submitAll } = startGroup((items) => items.slice(0, 1));
  const results = await submitAll(['a1', 'a2', 'b1']);
  assert.deepEqual(commits, ['a1 b1 a2', 'b1 a2', 'a2']);
  for (const [index, item] of ['a1', 'a2', 'b1'].entries())
    assert.deepEqual(results[index], { status: 'fulfilled', value: item });
});

test('what a commit leaves does not wait behind others that keep coming', async () => {
  const held = Promise.withResolvers<void>();
  const commits: string[] = [];
  const group = createGroupCommit<string, string>({
    maxItems: 3,
    maxWaitingBytes: 100,
    maxBytesOfAll: 400,
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

test('what a commit leaves out does not hold back what stands behind it', async () => {
  // Those of `a` fit only alone.
  const fit = (items: readonly string[]) =>
    items.map((item, at) => (at > 0 && item.startsWith('a') ? undefined : item));
  const alone = (items: readonly string[]) => (items[0]?.startsWith('a') ? items.slice(0, 1) : fit(items));
  const { commits, submitAll } = startGroup(alone, 10);
  await submitAll(['b1', 'a1', 'a2', 'b2', 'b3']);
  assert.deepEqual(commits, ['b1 a1 b2 a2 b3', 'a1 a2', 'a2']);
});

test('more of one owner than may wait is refused for now, of others nothing, and what was stored makes room', async () => {
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

test('many owners divide what may wait of all, and each has one item', async () => {
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

test('of a commit that fails each comes again alone, and only the one at fault is refused', async () => {
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

test('a database that is away refuses all that came together', async () => {
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
