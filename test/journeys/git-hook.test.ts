/** Real pushes publish events through the real hook. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventSchema } from '../../src/webhooks/events/event.ts';
import type { CommitInput } from '../../src/webhooks/git/read-commits.ts';
import { preparePushes, ZERO } from '../support/webhooks/pushed-repository.ts';

test('a push of a new branch publishes its commits with what they touched', async (t) => {
  const { commit, push, git, intake, waiting } = await preparePushes(t);
  const first = commit('a.txt', 'The first');
  writeFileSync(join(git('rev-parse', '--show-toplevel'), 'ünïcode name.txt'), 'x');
  const second = commit('a.txt', 'The second\n\nWith a body\n\nCo-authored-by: Linus <linus@example.com>');
  git('rm', '-q', 'a.txt');
  const third = commit('b.txt', 'The third');
  assert.equal(await push('main'), '');
  assert.deepEqual(waiting(), []);
  assert.equal(intake.published.length, 1);
  const { path, token, event } = intake.published[0]!;
  assert.equal(path, '/api/v5/repos/acme/doors/events');
  assert.equal(token, 'Bearer tvt_p_test');
  assert.ok(eventSchema.safeParse(event).success);
  assert.equal(event.kind, 'push');
  assert.equal(event.ref, 'refs/heads/main');
  assert.equal(event.before, ZERO);
  assert.equal(event.after, third);
  assert.equal(event.forced, false);
  assert.equal(event.total_commits, 3);
  const [one, two, three] = event.commits;
  assert.deepEqual(
    event.commits.map(({ id }: CommitInput) => id),
    [first, second, third],
  );
  assert.deepEqual([one.added, one.modified, one.removed], [['a.txt'], [], []]);
  assert.deepEqual([two.added, two.modified, two.removed], [['ünïcode name.txt'], ['a.txt'], []]);
  assert.deepEqual([three.added, three.modified, three.removed], [['b.txt'], [], ['a.txt']]);
  assert.deepEqual(two.parents, [first]);
  assert.deepEqual(two.author, { name: 'Grace', email: 'grace@example.com' });
  assert.deepEqual(two.co_authors, [{ name: 'Linus', email: 'linus@example.com' }]);
  assert.match(two.message, /^The second\n\nWith a body\n/);
});

test('an update lists its new commits only, a second branch those that no other has', async (t) => {
  const { commit, push, git, intake } = await preparePushes(t);
  const base = commit('a.txt', 'base');
  await push('main');
  const next = commit('a.txt', 'next');
  await push('main');
  git('checkout', '-qb', 'feature/x');
  const own = commit('a.txt', 'own');
  await push('feature/x');
  git('checkout', '-qb', 'empty', 'main');
  await push('empty');
  const [, update, branch, empty] = intake.published.map(({ event }) => event);
  assert.deepEqual([update.before, update.after, update.total_commits], [base, next, 1]);
  assert.deepEqual([branch.ref, branch.before, branch.total_commits], ['refs/heads/feature/x', ZERO, 1]);
  assert.equal(branch.commits[0].id, own);
  assert.deepEqual([empty.after, empty.total_commits, empty.commits], [next, 0, []]);
});

test('a forced push is marked as forced, and a deleted branch has no commits', async (t) => {
  const { commit, push, git, intake } = await preparePushes(t);
  const base = commit('a.txt', 'base');
  const lost = commit('a.txt', 'lost');
  await push('main');
  git('reset', '-q', '--hard', base);
  const other = commit('a.txt', 'other');
  await push('--force', 'main');
  await push('main:gone');
  await push('--delete', 'gone');
  const [, forced, , deleted] = intake.published.map(({ event }) => event);
  assert.deepEqual([forced.before, forced.after, forced.forced, forced.total_commits], [lost, other, true, 1]);
  assert.deepEqual([deleted.ref, deleted.before, deleted.after], ['refs/heads/gone', other, ZERO]);
});

test('tags are published with the commit behind them: light, annotated, deleted, and one on a file', async (t) => {
  const { commit, push, git, intake } = await preparePushes(t);
  const id = commit('a.txt', 'base');
  await push('main');
  git('tag', 'light');
  git('tag', '-a', 'v1', '-m', 'The first version');
  git('tag', 'blob', git('rev-parse', 'HEAD:a.txt'));
  await push('--tags');
  await push('--delete', 'light');
  const events = intake.published.slice(1).map(({ event }) => event);
  const byRef = new Map(events.slice(0, 3).map((event) => [event.ref, event]));
  const light = byRef.get('refs/tags/light');
  const annotated = byRef.get('refs/tags/v1');
  const blob = byRef.get('refs/tags/blob');
  assert.deepEqual([light.kind, light.before, light.after, light.checkout], ['tag_push', ZERO, id, id]);
  assert.deepEqual([light.base_ref, light.message, light.commits[0].id], ['main', '', id]);
  assert.equal(annotated.after, git('rev-parse', 'v1'));
  assert.notEqual(annotated.after, id);
  assert.deepEqual([annotated.checkout, annotated.message], [id, 'The first version']);
  assert.deepEqual([blob.checkout, blob.commits], [undefined, undefined]);
  assert.deepEqual([events[3].ref, events[3].after], ['refs/tags/light', ZERO]);
});

test('of 30 commits the newest 20 are listed and all are counted', async (t) => {
  const { commit, push, intake } = await preparePushes(t);
  for (let index = 1; index <= 30; index++) commit('a.txt', `commit ${index}`);
  await push('main');
  const { event } = intake.published[0]!;
  assert.equal(event.total_commits, 30);
  assert.deepEqual(
    event.commits.map(({ message }: CommitInput) => message?.trim()),
    Array.from({ length: 20 }, (_, index) => `commit ${index + 11}`),
  );
});

test('a merge lists what it brought, and what it changed against its first parent', async (t) => {
  const { commit, push, git, intake } = await preparePushes(t);
  commit('a.txt', 'base');
  await push('main');
  git('checkout', '-qb', 'side');
  commit('side.txt', 'side');
  git('checkout', '-q', 'main');
  commit('main.txt', 'main');
  git('merge', '-q', '--no-ff', '-m', 'merged', 'side');
  await push('main');
  const { event } = intake.published[1]!;
  assert.equal(event.total_commits, 3);
  const merge = event.commits.at(-1);
  assert.equal(merge.parents.length, 2);
  assert.deepEqual(merge.added, ['side.txt']);
});

test('commits are published as they are stored, whatever refs/replace shows in their place', async (t) => {
  const { commit, push, git, intake } = await preparePushes(t);
  const real = commit('a.txt', 'What was pushed');
  git('checkout', '-q', '--orphan', 'other');
  const other = commit('b.txt', 'What was never pushed to main');
  git('checkout', '-q', 'main');
  await push(`${other}:refs/replace/${real}`);
  await push('main');
  const [event] = intake.published.map((published) => published.event);
  assert.equal(event.commits[0].id, real);
  assert.equal(event.commits[0].message.trim(), 'What was pushed');
});

test('a commit that only a reference without events held is new to the branch that brings it', async (t) => {
  const { commit, push, git, intake } = await preparePushes(t);
  commit('a.txt', 'base');
  await push('main');
  const own = commit('a.txt', 'own');
  await push('main:refs/hidden/first');
  git('branch', 'feature');
  await push('feature');
  const event = intake.published.at(-1)?.event;
  assert.deepEqual([event.ref, event.total_commits, event.commits[0]?.id], ['refs/heads/feature', 1, own]);
});
