/** A real bare repository, real pushes, the real hook; the service is a plain HTTP server that keeps what it is told. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { eventSchema } from '../../src/webhooks/event.ts';
import type { CommitInput } from '../../src/webhooks/git/read-commits.ts';
import { runTrivet } from '../support/run-trivet.ts';

const ZERO = '0'.repeat(40);

interface Announced {
  readonly path: string;
  readonly key: string;
  readonly token: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into any event
  readonly event: any;
}

interface Intake {
  readonly announced: Announced[];
  readonly port: number;
  /** What the next requests are answered with. */
  status: number;
  close(): Promise<void>;
}

async function startIntake(port = 0): Promise<Intake> {
  const announced: Announced[] = [];
  const intake = { announced, port, status: 202, close: () => close(server) };
  const server: Server = createServer((request, response) => void answer(request, response));
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const event = JSON.parse(await text(request));
    if (intake.status === 202)
      announced.push({
        path: request.url ?? '',
        key: String(request.headers['idempotency-key']),
        token: String(request.headers.authorization),
        event,
      });
    response.writeHead(intake.status, { 'content-type': 'application/json' }).end('{"message":"for a test"}');
  };
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  intake.port = (server.address() as AddressInfo).port;
  return intake;
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
}

interface Bench {
  readonly bare: string;
  readonly work: string;
  readonly intake: Intake;
  readonly git: (...argv: string[]) => string;
  /** Resolves with what the hook said. */
  readonly push: (...argv: string[]) => Promise<string>;
  readonly commit: (file: string, message: string) => string;
  readonly waiting: () => string[];
}

async function setUp(t: TestContext): Promise<Bench> {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-git-'));
  const intake = await startIntake();
  t.after(async () => {
    await intake.close().catch(() => {});
    rmSync(folder, { recursive: true, force: true });
  });
  const bare = join(folder, 'doors.git');
  const work = join(folder, 'work');
  execFileSync('git', ['init', '-q', '--bare', '-b', 'main', bare]);
  execFileSync('git', ['init', '-q', '-b', 'main', work]);
  const git = (...argv: string[]) => execFileSync('git', argv, { cwd: work, encoding: 'utf8', stdio: 'pipe' }).trim();
  git('config', 'user.name', 'Grace');
  git('config', 'user.email', 'grace@example.com');
  git('remote', 'add', 'origin', bare);
  writeFileSync(join(folder, 'token'), 'tvt_p_test\n');
  const url = `http://127.0.0.1:${intake.port}`;
  const installed = await runTrivet([
    'git-hook',
    'install',
    bare,
    '--repo',
    'acme/doors',
    '--url',
    url,
    '--token-file',
    join(folder, 'token'),
  ]);
  assert.equal(installed.code, 0, installed.stderr);
  // Nothing may outlive a test.
  appendHookOption(join(bare, 'hooks', 'post-receive'), '--no-background');
  return {
    bare,
    work,
    intake,
    git,
    push: (...argv) => pushAndRead(work, argv),
    commit: (file, message) => {
      appendFileSync(join(work, file), `${message}\n`);
      git('add', '-A');
      git('commit', '-qm', message);
      return git('rev-parse', 'HEAD');
    },
    waiting: () => readSpool(bare),
  };
}

function appendHookOption(hook: string, option: string): void {
  const lines = execFileSync('cat', [hook], { encoding: 'utf8' }).trimEnd();
  writeFileSync(hook, `${lines} ${option}\n`);
}

function pushAndRead(work: string, argv: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile('git', ['push', '-q', 'origin', ...argv], { cwd: work }, (error, _, stderr) =>
      error === null ? resolve(stderr) : reject(new Error(stderr)),
    );
  });
}

function readSpool(bare: string): string[] {
  const folder = join(bare, 'trivet-spool');
  return existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith('.json')) : [];
}

test('a push of a new branch announces its commits with what they touched', async (t) => {
  const { commit, push, git, intake, waiting } = await setUp(t);
  const first = commit('a.txt', 'The first');
  writeFileSync(join(git('rev-parse', '--show-toplevel'), 'ünïcode name.txt'), 'x');
  const second = commit('a.txt', 'The second\n\nWith a body\n\nCo-authored-by: Linus <linus@example.com>');
  git('rm', '-q', 'a.txt');
  const third = commit('b.txt', 'The third');
  assert.equal(await push('main'), '');
  assert.deepEqual(waiting(), []);
  assert.equal(intake.announced.length, 1);
  const { path, token, event } = intake.announced[0]!;
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
  const { commit, push, git, intake } = await setUp(t);
  const base = commit('a.txt', 'base');
  await push('main');
  const next = commit('a.txt', 'next');
  await push('main');
  git('checkout', '-qb', 'feature/x');
  const own = commit('a.txt', 'own');
  await push('feature/x');
  git('checkout', '-qb', 'empty', 'main');
  await push('empty');
  const [, update, branch, empty] = intake.announced.map(({ event }) => event);
  assert.deepEqual([update.before, update.after, update.total_commits], [base, next, 1]);
  assert.deepEqual([branch.ref, branch.before, branch.total_commits], ['refs/heads/feature/x', ZERO, 1]);
  assert.equal(branch.commits[0].id, own);
  assert.deepEqual([empty.after, empty.total_commits, empty.commits], [next, 0, []]);
});

test('a forced push says so, and a deleted branch has no commit left', async (t) => {
  const { commit, push, git, intake } = await setUp(t);
  const base = commit('a.txt', 'base');
  const lost = commit('a.txt', 'lost');
  await push('main');
  git('reset', '-q', '--hard', base);
  const other = commit('a.txt', 'other');
  await push('--force', 'main');
  await push('main:gone');
  await push('--delete', 'gone');
  const [, forced, , deleted] = intake.announced.map(({ event }) => event);
  assert.deepEqual([forced.before, forced.after, forced.forced, forced.total_commits], [lost, other, true, 1]);
  assert.deepEqual([deleted.ref, deleted.before, deleted.after], ['refs/heads/gone', other, ZERO]);
});

test('tags are announced with the commit behind them: light, annotated, deleted, and one on a file', async (t) => {
  const { commit, push, git, intake } = await setUp(t);
  const id = commit('a.txt', 'base');
  await push('main');
  git('tag', 'light');
  git('tag', '-a', 'v1', '-m', 'The first version');
  git('tag', 'blob', git('rev-parse', 'HEAD:a.txt'));
  await push('--tags');
  await push('--delete', 'light');
  const events = intake.announced.slice(1).map(({ event }) => event);
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
  const { commit, push, intake } = await setUp(t);
  for (let index = 1; index <= 30; index++) commit('a.txt', `commit ${index}`);
  await push('main');
  const { event } = intake.announced[0]!;
  assert.equal(event.total_commits, 30);
  assert.deepEqual(
    event.commits.map(({ message }: CommitInput) => message?.trim()),
    Array.from({ length: 20 }, (_, index) => `commit ${index + 11}`),
  );
});

test('a merge lists what it brought, and what it changed against its first parent', async (t) => {
  const { commit, push, git, intake } = await setUp(t);
  commit('a.txt', 'base');
  await push('main');
  git('checkout', '-qb', 'side');
  commit('side.txt', 'side');
  git('checkout', '-q', 'main');
  commit('main.txt', 'main');
  git('merge', '-q', '--no-ff', '-m', 'merged', 'side');
  await push('main');
  const { event } = intake.announced[1]!;
  assert.equal(event.total_commits, 3);
  const merge = event.commits.at(-1);
  assert.equal(merge.parents.length, 2);
  assert.deepEqual(merge.added, ['side.txt']);
});

test('with the service down nothing is refused or lost, and the next push sends all of it in order', async (t) => {
  const { commit, push, intake, waiting } = await setUp(t);
  await intake.close();
  const ids: string[] = [];
  for (let index = 0; index < 3; index++) {
    ids.push(commit('a.txt', `commit ${index}`));
    const said = await push('main');
    assert.match(said, /the webhooks of this push wait for the service/);
  }
  assert.equal(waiting().length, 3);
  const again = await startIntake(intake.port);
  t.after(() => again.close());
  ids.push(commit('a.txt', 'the last'));
  assert.equal(await push('main'), '');
  assert.deepEqual(
    again.announced.map(({ event }) => event.after),
    ids,
  );
  assert.equal(new Set(again.announced.map(({ key }) => key)).size, 4);
  assert.deepEqual(waiting(), []);
});

test('a service that fails makes the push wait for nothing, and git-hook send brings it later under the same key', async (t) => {
  const { commit, push, intake, waiting, bare } = await setUp(t);
  intake.status = 503;
  commit('a.txt', 'one');
  assert.match(await push('main'), /503 for a test/);
  assert.equal(waiting().length, 1);
  intake.status = 202;
  const sent = await runTrivet(['git-hook', 'send', '--git-dir', bare]);
  assert.equal(sent.stdout, '1 sent, 0 waiting\n');
  assert.equal(intake.announced.length, 1);
});

test('an event that the service will never take is set aside and does not stop the next', async (t) => {
  const { commit, push, intake, waiting, bare } = await setUp(t);
  intake.status = 400;
  commit('a.txt', 'one');
  assert.match(await push('main'), /the service refused an event: 400 for a test/);
  assert.deepEqual(waiting(), []);
  assert.equal(readdirSync(join(bare, 'trivet-spool', 'refused')).length, 1);
  intake.status = 202;
  commit('a.txt', 'two');
  assert.equal(await push('main'), '');
  assert.equal(intake.announced.length, 1);
});

test('two pushes at once are both announced', async (t) => {
  const { commit, push, git, intake, bare, waiting } = await setUp(t);
  commit('a.txt', 'base');
  git('branch', 'left');
  git('branch', 'right');
  await Promise.all([push('left'), push('right')]);
  // One may have found the other sending: then it is sent by that one, or waits.
  if (waiting().length > 0) await runTrivet(['git-hook', 'send', '--git-dir', bare]);
  assert.deepEqual(
    new Set(intake.announced.map(({ event }) => event.ref)),
    new Set(['refs/heads/left', 'refs/heads/right']),
  );
});

test('a sender in the background brings what a push had to leave', async (t) => {
  const { commit, push, intake, bare, waiting } = await setUp(t);
  await intake.close();
  const hook = join(bare, 'hooks', 'post-receive');
  const lines = execFileSync('cat', [hook], { encoding: 'utf8' });
  writeFileSync(hook, lines.replace(' --no-background', ''));
  commit('a.txt', 'one');
  await push('main');
  assert.equal(waiting().length, 1);
  const again = await startIntake(intake.port);
  t.after(() => again.close());
  while (again.announced.length === 0 || waiting().length > 0) await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(again.announced.length, 1);
});

test('the hook is not installed over another one', async (t) => {
  const { bare, work } = await setUp(t);
  writeFileSync(join(work, 'token'), 't');
  const again = await runTrivet([
    'git-hook',
    'install',
    bare,
    '--repo',
    'acme/doors',
    '--token-file',
    join(work, 'token'),
  ]);
  assert.equal(again.code, 1);
  assert.match(again.stderr, /exists; add to it: exec /);
  const elsewhere = await runTrivet([
    'git-hook',
    'install',
    work,
    '--repo',
    'acme/doors',
    '--token-file',
    join(work, 'token'),
  ]);
  assert.equal(elsewhere.code, 2);
});

test('the hook is installed over its own, with another address and token', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-git-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const bare = join(folder, 'doors.git');
  execFileSync('git', ['init', '-q', '--bare', bare]);
  const token = join(folder, 'token');
  for (const text of ['first', 'second']) {
    writeFileSync(token, text);
    const url = `http://${text}.example`;
    const argv = ['git-hook', 'install', bare, '--repo', 'acme/doors', '--url', url, '--token-file', token];
    assert.equal((await runTrivet(argv)).code, 0);
    assert.deepEqual(JSON.parse(readFileSync(join(bare, 'trivet.json'), 'utf8')), { url, token: text });
  }
});
