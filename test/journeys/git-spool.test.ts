/** When the service is unavailable, slow, or refuses an event, no push is refused, and no accepted push is lost. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { waitUntil } from '../support/basics/wait-until.ts';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { preparePushes, startIntake } from '../support/webhooks/pushed-repository.ts';

test('with the service down nothing is refused or lost, and the next push sends all of it in order', async (t) => {
  const { commit, push, intake, waiting } = await preparePushes(t);
  await intake.close();
  const ids: string[] = [];
  for (let index = 0; index < 3; index++) {
    ids.push(commit('a.txt', `commit ${index}`));
    const said = await push('main');
    assert.match(said, /the webhooks of this push wait in trivet-spool until the service takes them: /);
  }
  assert.equal(waiting().length, 3);
  const again = await startIntake(intake.port);
  t.after(() => again.close());
  ids.push(commit('a.txt', 'the last'));
  assert.equal(await push('main'), '');
  assert.deepEqual(
    again.published.map(({ event }) => event.after),
    ids,
  );
  assert.equal(new Set(again.published.map(({ key }) => key)).size, 4);
  assert.deepEqual(waiting(), []);
});

test('a service that fails makes the push wait for nothing, and git-hook send brings it later under the same key', async (t) => {
  const { commit, push, intake, waiting, bare } = await preparePushes(t);
  intake.status = 503;
  commit('a.txt', 'one');
  assert.match(await push('main'), /503 for a test/);
  assert.equal(waiting().length, 1);
  intake.status = 202;
  const sent = await runTrivet(['git-hook', 'send', '--git-dir', bare]);
  assert.equal(sent.stdout, '1 sent, 0 waiting\n');
  assert.equal(intake.published.length, 1);
});

test('a token that the service does not know is named with the command that gives another', async (t) => {
  const { commit, push, intake, waiting } = await preparePushes(t);
  intake.status = 401;
  commit('a.txt', 'one');
  assert.match(
    await push('main'),
    /until the service takes them: 401 for a test; "trivet git-hook install" with --token-file/,
  );
  assert.equal(waiting().length, 1);
});

test('an event that the service will never take is set aside and does not stop the next', async (t) => {
  const { commit, push, intake, waiting, bare } = await preparePushes(t);
  intake.status = 400;
  commit('a.txt', 'one');
  assert.match(await push('main'), /the service refused an event: 400 for a test/);
  assert.deepEqual(waiting(), []);
  assert.equal(readdirSync(join(bare, 'trivet-spool', 'refused')).length, 1);
  intake.status = 202;
  commit('a.txt', 'two');
  assert.equal(await push('main'), '');
  assert.equal(intake.published.length, 1);
});

test('a service that accepts small requests only gets a shorter event', async (t) => {
  const { commit, push, intake, waiting } = await preparePushes(t);
  intake.maxBytes = 5000;
  const id = commit('a.txt', `long ${'m'.repeat(20_000)}`);
  assert.equal(await push('main'), '');
  assert.deepEqual(waiting(), []);
  assert.equal(intake.published[0]?.event.after, id);
  assert.equal(intake.published[0]?.event.total_commits, 1);
});

test('a spool that cannot be written does not keep a push from the service', async (t) => {
  const { commit, push, intake, bare } = await preparePushes(t);
  writeFileSync(join(bare, 'trivet-spool'), 'in the place of the folder');
  const id = commit('a.txt', 'one');
  assert.match(await push('main'), /without the spool, which cannot be written/);
  assert.deepEqual(
    intake.published.map(({ event }) => event.after),
    [id],
  );
  intake.status = 503;
  commit('a.txt', 'two');
  assert.match(await push('main'), /cannot publish this push: 1 of 1 events are lost: 503/);
});

test('pushes while the service is away leave one process in the background', async (t) => {
  const { commit, push, intake, bare, waiting } = await preparePushes(t);
  await intake.close();
  const hook = join(bare, 'hooks', 'post-receive');
  writeFileSync(hook, readFileSync(hook, 'utf8').replace(' --no-background', ''));
  const countSenders = () =>
    readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && readCommand(pid).includes(`send\0--git-dir\0${bare}`))
      .length;
  for (let count = 1; count <= 4; count += 1) {
    commit('a.txt', `commit ${count}`);
    await push('main');
  }
  // Senders that find another at work end by themselves; the last ends with the spool.
  await waitUntil(() => countSenders() <= 1);
  assert.equal(waiting().length, 4);
  const again = await startIntake(intake.port);
  t.after(() => again.close());
  await waitUntil(() => waiting().length === 0 && countSenders() === 0);
  assert.equal(again.published.length, 4);
});

function readCommand(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

test('two pushes at once are both published', async (t) => {
  const { commit, push, git, intake, bare, waiting } = await preparePushes(t);
  commit('a.txt', 'base');
  git('branch', 'left');
  git('branch', 'right');
  await Promise.all([push('left'), push('right')]);
  // One may have found the other sending: then it is sent by that one, or waits.
  if (waiting().length > 0) await runTrivet(['git-hook', 'send', '--git-dir', bare]);
  assert.deepEqual(
    new Set(intake.published.map(({ event }) => event.ref)),
    new Set(['refs/heads/left', 'refs/heads/right']),
  );
});

test('a sender in the background brings what a push had to leave', async (t) => {
  const { commit, push, intake, bare, waiting } = await preparePushes(t);
  await intake.close();
  const hook = join(bare, 'hooks', 'post-receive');
  const lines = execFileSync('cat', [hook], { encoding: 'utf8' });
  writeFileSync(hook, lines.replace(' --no-background', ''));
  commit('a.txt', 'one');
  await push('main');
  assert.equal(waiting().length, 1);
  const again = await startIntake(intake.port);
  t.after(() => again.close());
  await waitUntil(() => again.published.length > 0 && waiting().length === 0);
  assert.equal(again.published.length, 1);
});
