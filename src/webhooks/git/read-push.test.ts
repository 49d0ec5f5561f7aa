import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { createRawObjects } from '../../../test/support/webhooks/raw-objects.ts';
import { type Event, eventSchema } from '../events/event.ts';
import { fitEvent, MAX_EVENT_BYTES } from './fit-event.ts';
import { readPush } from './read-push.ts';
import { createGit, type RunGit } from './run-git.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-read-push-'));
after(() => rmSync(folder, { recursive: true, force: true }));
execFileSync('git', ['init', '-q', '-b', 'main', folder]);
const git = createGit(join(folder, '.git'));
const raw = createRawObjects(folder);
const ZERO = '0'.repeat(40);
const ACTOR = { username: 'grace', name: 'Grace' };
const PUSH = { git, actor: ACTOR, pushOptions: [], onGap: () => {} };

/** Reads a push as the hook and then the service do; throws if the service would refuse it. */
async function publish(after: string, ref = 'refs/heads/main', run: RunGit = git) {
  const gaps: string[] = [];
  const source = { ...PUSH, git: run, onGap: (reason: string) => gaps.push(reason) };
  const [event] = await readPush({ ...source, updates: [{ before: ZERO, after, ref }] });
  assert.ok(event);
  return { event: eventSchema.parse(fitEvent(event)) as Event & { kind: 'push' }, gaps };
}

const bytes = fc.uint8Array({ maxLength: 400 }).map((array) => Buffer.from(array).toString('latin1'));
const part = fc.oneof(bytes, fc.constantFrom('', ' ', '\n', '<', '>', '<>', 'n'.repeat(300), 'Grace <g@x>'));
const number = fc.oneof(fc.bigInt().map(String), fc.integer({ min: 0, max: 2 ** 40 }).map(String), part);
const person = fc
  .tuple(part, part, number, part)
  .map(([name, email, time, zone]) => `${name} <${email}> ${time} ${zone}`);
const oddCommit = fc.record({
  author: fc.oneof(person, part),
  committer: fc.oneof(person, part),
  headers: fc.oneof(fc.constant(''), bytes),
  message: fc.oneof(bytes, part, fc.constant('Co-authored-by: a\n')),
});

test('readPush() makes an event that the service takes from any commit', async () => {
  const property = fc.asyncProperty(oddCommit, async ({ author, committer, headers, message }) => {
    const text = `tree ${raw.emptyTree}\nauthor ${author}\ncommitter ${committer}\n${headers}\n${message}`;
    const id = raw.write('commit', Buffer.from(text, 'latin1'));
    const { event } = await publish(id);
    assert.equal(event.after, id);
    assert.ok(Buffer.byteLength(JSON.stringify(event)) <= MAX_EVENT_BYTES);
  });
  await fc.assert(property, { numRuns: 25 });
});

test('readPush() makes an event that the service takes from any tag', async () => {
  const commit = raw.write('commit', `tree ${raw.emptyTree}\nauthor A <a@x> 1 +0000\ncommitter A <a@x> 1 +0000\n\nx\n`);
  const property = fc.asyncProperty(person, bytes, bytes, async (tagger, name, message) => {
    const text = `object ${commit}\ntype commit\ntag ${name}\ntagger ${tagger}\n${message}`;
    const id = raw.write('tag', Buffer.from(text, 'latin1'));
    assert.equal((await publish(id, `refs/tags/${name}x`)).event.after, id);
  });
  await fc.assert(property, { numRuns: 10 });
});

test('readPush() publishes an event without the parts that git cannot read, and reports why', async () => {
  const id = raw.write('commit', `tree ${raw.emptyTree}\nauthor A <a@x> 1 +0000\ncommitter A <a@x> 1 +0000\n\nx\n`);
  for (const broken of ['log', 'rev-list', 'for-each-ref']) {
    const run: RunGit = (call) => git(call.argv[0] === broken ? { ...call, argv: [broken, '--no-such-option'] } : call);
    const { event, gaps } = await publish(id, 'refs/heads/main', run);
    assert.equal(event.after, id);
    assert.equal(gaps.length, 1, broken);
    assert.match(gaps[0] ?? '', new RegExp(`^Cannot run git ${broken}: `));
  }
});
