import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Failure } from '../../errors.ts';
import { createGroupCommit } from './group-commit.ts';

/** Items are named after their owner: `a1`, `a2`, `b1`. */
function startGroup(commit: (items: readonly string[]) => readonly string[], maxItems = 3) {
  const commits: string[] = [];
  const group = createGroupCommit<string, string>({
    maxItems,
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

test('what a commit leaves comes again, after the others whose turn it is', async () => {
  const { commits, submitAll } = startGroup((items) => items.slice(0, 1));
  const results = await submitAll(['a1', 'a2', 'b1']);
  assert.deepEqual(commits, ['a1 b1 a2', 'b1 a2', 'a2']);
  for (const [index, item] of ['a1', 'a2', 'b1'].entries())
    assert.deepEqual(results[index], { status: 'fulfilled', value: item });
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
