/** Everything that git accepts is published: real pushes of odd objects, through the real hook, to the real program. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { startReceiver } from '../support/network/receiver.ts';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { preparePushes } from '../support/webhooks/pushed-repository.ts';
import { type CommitParts, createRawObjects, describeRawCommit } from '../support/webhooks/raw-objects.ts';
import { PATIENTLY, useWebhookJourney } from '../support/webhooks/webhook-journey.ts';

const journey = useWebhookJourney();

interface Publishing {
  readonly bench: Awaited<ReturnType<typeof preparePushes>>;
  /** Pushes, and resolves with the bodies that a receiver got, by reference. */
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into any body
  readonly publish: (count: number, ...argv: string[]) => Promise<Map<string, any>>;
}

/** Fails when an event was refused, or did not leave the spool. */
async function preparePublishing(t: TestContext, objectFormat: 'sha1' | 'sha256' = 'sha1'): Promise<Publishing> {
  const target = { url: journey.httpUrl, token: journey.token, repository: 'grace/doors', objectFormat };
  const bench = await preparePushes(t, target);
  const receiver = await startReceiver();
  const hook = await journey.createHook({ url: receiver.url, tag_push_events: true });
  t.after(async () => {
    await journey.call('DELETE', `/repos/grace/doors/hooks/${hook.id}`);
    await receiver[Symbol.asyncDispose]();
  });
  return {
    bench,
    publish: async (count, ...argv) => {
      const { length } = receiver.received;
      const remarks = await bench.push(...argv);
      assert.doesNotMatch(remarks, /refused|cannot publish|not complete/);
      // A push waits two seconds for the service; what is left goes with the next sending.
      if (bench.waiting().length > 0) await runTrivet(['git-hook', 'send', '--git-dir', bench.bare]);
      assert.deepEqual(bench.waiting(), []);
      assert.equal(existsSync(join(bench.bare, 'trivet-spool', 'refused')), false, 'an event was refused');
      await receiver.waitFor(length + count);
      const bodies = receiver.received.slice(length).map(({ body }) => JSON.parse(body.toString('utf8')));
      return new Map(bodies.map((body) => [body.ref, body]));
    },
  };
}

const LONG = 'n'.repeat(300);
const AT = '1772330400 +0100';

/** What `cat-file commit` would show, less the tree: by the reference it is pushed to. */
const ODD_COMMITS: Readonly<Record<string, Partial<CommitParts>>> = {
  'a-long-name': { author: `${LONG} <grace@example.com> ${AT}`, committer: `${LONG} <${LONG}@example.com> ${AT}` },
  'no-name': { author: ` <grace@example.com> ${AT}`, committer: ` <grace@example.com> ${AT}` },
  'no-e-mail': { author: `Grace ${AT}`, committer: `Grace ${AT}` },
  'no-date': { author: 'Grace <g@example.com>', committer: 'Grace <g@example.com>' },
  'empty-person': { author: '', committer: '' },
  'year-10000': { author: 'G <g@x> 253402300800 +0800', committer: 'G <g@x> 253402300800 +0800' },
  'negative-date': { author: 'G <g@x> -5 +0000', committer: 'G <g@x> -5 +0000' },
  'before-1970': { author: 'G <g@x> 1 -0060', committer: 'G <g@x> 1 -0060' },
  'endless-date': { committer: `G <g@x> ${'9'.repeat(40)} +0000` },
  'zone-9999': { author: `G <g@x> 1772330400 +9999`, committer: `G <g@x> 1772330400 -9999` },
  'no-zone': { committer: 'G <g@x> 1772330400' },
  'latin-1': { headers: 'encoding ISO-8859-1\n', message: 'caf\xe9\n', author: `Ren\xe9 <r@x> ${AT}` },
  'not-utf-8': { message: 'caf\xe9 \xff\xfe\n', author: `Ren\xe9 <\xff@x> ${AT}` },
  binary: { message: Array.from({ length: 255 }, (_, index) => String.fromCharCode(index + 1)).join('') },
  'a-NUL': { message: 'before\0after\n' },
  'no-message': { message: '' },
  'huge-message': { message: 'm'.repeat(3_000_000) },
  'huge-controls': { message: '\x01'.repeat(900_000) },
  'co-authors': { message: `x\n\n${`Co-authored-by: ${LONG} <a@x>\n`.repeat(300)}` },
  'blank-co-author': { message: `x\n\nCo-authored-by: a${' '.repeat(60_000)}b\n` },
  'unknown-headers': { headers: `gpgsig nonsense\nmergetag x\n${'h'.repeat(1000)} y\n` },
};

test('every odd commit is published', PATIENTLY, async (t) => {
  const { bench, publish } = await preparePublishing(t);
  const raw = createRawObjects(bench.work);
  const refs = new Map<string, string>();
  for (const [name, parts] of Object.entries(ODD_COMMITS))
    refs.set(`refs/heads/${name}`, raw.write('commit', describeRawCommit({ tree: raw.emptyTree, ...parts })));
  refs.set('refs/heads/no-person-at-all', raw.write('commit', `tree ${raw.emptyTree}\n\nx\n`));
  raw.setRefs(refs);
  const bodies = await publish(refs.size, 'refs/heads/*:refs/heads/*');
  for (const [ref, id] of refs) {
    const body = bodies.get(ref);
    assert.ok(body, `${ref} was not delivered`);
    assert.deepEqual([body.after, body.total_commits_count, body.commits[0]?.id], [id, 1, id], ref);
  }
  const commitOf = (name: string) => bodies.get(`refs/heads/${name}`).commits[0];
  assert.equal(commitOf('a-long-name').author.name, LONG.slice(0, 255));
  assert.equal(commitOf('year-10000').timestamp, '9999-12-30T23:59:59Z');
  assert.equal(commitOf('negative-date').timestamp, '1970-01-01T00:00:00Z');
  assert.equal(commitOf('zone-9999').timestamp, '2026-03-01T02:00:00Z');
  assert.equal(commitOf('latin-1').message, 'café\n');
  assert.equal(commitOf('latin-1').author.name, 'René');
  assert.equal(commitOf('not-utf-8').message, 'caf\ufffd \ufffd\ufffd\n');
  assert.equal(commitOf('huge-message').message.length, 262_144);
  assert.equal(commitOf('co-authors').cooperate_authors.length, 100);
});

test('every odd reference is published, with the commits that are new in it', PATIENTLY, async (t) => {
  const { bench, publish } = await preparePublishing(t);
  const raw = createRawObjects(bench.work);
  const id = bench.commit('a.txt', 'base');
  await publish(1, 'main');
  const deep = `${'d'.repeat(200)}/`.repeat(8);
  const refs = new Map<string, string>();
  for (const [index, name] of [
    '\xff\xfe',
    'caf\xc3\xa9',
    '\xe2\x80\xa8x',
    `"'$(x);&`,
    `${deep}x`,
    '@',
    '-x',
  ].entries()) {
    const commit = describeRawCommit({ tree: raw.emptyTree, parents: [id], message: `${index}\n` });
    refs.set(`refs/heads/odd/${name}`, raw.write('commit', commit));
    refs.set(`refs/tags/odd/${name}`, id);
  }
  raw.setRefs(refs);
  const bodies = await publish(refs.size, 'refs/heads/odd/*:refs/heads/odd/*', 'refs/tags/*:refs/tags/*');
  for (const [ref, after] of refs) {
    const body = bodies.get(Buffer.from(ref, 'latin1').toString('utf8'));
    assert.ok(body, `${JSON.stringify(ref)} was not delivered`);
    assert.deepEqual([body.after, body.total_commits_count], [after, 1], ref);
  }
  const tagged = await tagOnLongBranch(bench.git, publish, deep);
  assert.equal(tagged.base_ref, `${deep}only`);
});

async function tagOnLongBranch(git: (...argv: string[]) => string, publish: Publishing['publish'], deep: string) {
  git('checkout', '-q', '--orphan', `${deep}only`);
  git('commit', '-q', '--allow-empty', '-m', 'only here');
  git('tag', 'on-a-long-branch');
  const bodies = await publish(2, 'HEAD', 'refs/tags/on-a-long-branch');
  return bodies.get('refs/tags/on-a-long-branch');
}

test(
  'odd paths, submodules, renames, empty commits, octopus merges, and tags on tags are published',
  PATIENTLY,
  async (t) => {
    const { bench, publish } = await preparePublishing(t);
    const { git, work, commit } = bench;
    commit('a.txt', 'base');
    mkdirSync(join(work, 'dir'));
    const paths = ['a "quoted" name', 'two\nlines', 'tab\there', 'A', 'M100', 'dir/\u2028', '-x'];
    for (const path of paths) writeFileSync(join(work, path), path);
    const bytes = Buffer.concat([Buffer.from(work), Buffer.from('/l\xff', 'latin1')]);
    writeFileSync(bytes, 'not UTF-8');
    commit('b.txt', 'odd paths');
    git('update-index', '--add', '--cacheinfo', `160000,${git('rev-parse', 'HEAD')},module`);
    git('commit', '-qm', 'a submodule');
    git('mv', 'a.txt', 'renamed.txt');
    git('commit', '-qm', 'a rename');
    git('commit', '-q', '--allow-empty', '-m', 'nothing');
    const heads = Array.from({ length: 70 }, (_, index) =>
      git('commit-tree', '-p', 'HEAD', '-m', `head ${index}`, 'HEAD^{tree}'),
    );
    const parents = ['HEAD', ...heads].flatMap((id) => ['-p', id]);
    git('update-ref', 'refs/heads/main', git('commit-tree', ...parents, '-m', 'octopus', 'HEAD^{tree}'));
    git('tag', '-a', 'inner', '-m', 'inner');
    git('tag', '-a', 'outer', '-m', 'outer', 'inner');
    const bodies = await publish(3, 'main', 'inner', 'outer');
    const main = bodies.get('refs/heads/main');
    assert.equal(main.total_commits_count, 76);
    assert.equal(main.commits.at(-1).message, 'octopus\n');
    const outer = bodies.get('refs/tags/outer');
    assert.deepEqual([outer.message, outer.checkout_sha], ['outer', git('rev-parse', 'main')]);
    git('checkout', '-q', '-f', '-b', 'short', 'main~3');
    git('rm', '-q', '--cached', 'module');
    git('commit', '-qm', 'without the submodule');
    const short = (await publish(1, 'short')).get('refs/heads/short');
    assert.deepEqual(short.commits.at(-1).removed, ['module']);
  },
);

test('a repository of SHA-256 ids is published', PATIENTLY, async (t) => {
  const { bench, publish } = await preparePublishing(t, 'sha256');
  const id = bench.commit('a.txt', 'base');
  assert.equal(id.length, 64);
  bench.git('tag', '-a', 'v1', '-m', 'one');
  const bodies = await publish(2, 'main', 'v1');
  const main = bodies.get('refs/heads/main');
  assert.deepEqual([main.after, main.commits[0].id, main.commits[0].added], [id, id, ['a.txt']]);
  assert.equal(bodies.get('refs/tags/v1').checkout_sha, id);
});

test('a first push of 100,000 commits and of 50,000 files is published', PATIENTLY, async (t) => {
  const { bench, publish } = await preparePublishing(t);
  const person = 'Grace <grace@example.com> 1772330400 +0100';
  const commits = Array.from({ length: 100_000 }, (_, index) => {
    const message = `commit ${index}`;
    return `commit refs/heads/main\ncommitter ${person}\ndata ${message.length}\n${message}\n`;
  });
  const files = Array.from(
    { length: 50_000 },
    (_, index) => `M 644 inline dir/${index}/${LONG.slice(0, 100)}\ndata 0\n\n`,
  );
  const last = `commit refs/heads/main\ncommitter ${person}\ndata 5\nfiles\n${files.join('')}`;
  execFileSync('git', ['fast-import', '--quiet'], { cwd: bench.work, input: `${commits.join('')}${last}` });
  const body = (await publish(1, 'main')).get('refs/heads/main');
  assert.equal(body.total_commits_count, 100_001);
  assert.equal(body.commits.length, 20);
  assert.equal(body.commits.at(-1).message, 'files');
  assert.ok(body.commits.at(-1).added.length >= 2000);
});

test('what git push was given with -o is in the event and in the body', PATIENTLY, async (t) => {
  const { bench, publish } = await preparePublishing(t);
  bench.commit('a.txt', 'base');
  const options = ['-o', 'ci.skip', '-o', 'reviewer=ada "the first"'];
  const body = (await publish(1, ...options, 'main')).get('refs/heads/main');
  assert.deepEqual(body.push_options, ['ci.skip', 'reviewer=ada "the first"']);
});
