import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { startReceiver } from '../../../test/support/network/receiver.ts';
import { createSampleEvent } from '../events/sample-event.ts';
import { createHttpSender, type SendEntry } from './http-sender.ts';
import { sendPatiently, sendSpool } from './send-spool.ts';
import { openSpool, type Spool } from './spool.ts';

const event = createSampleEvent('push', { username: 'grace', name: 'Grace' }, 'main', 0);
const entryOf = (key: string, repository = 'grace/doors') => ({ repository, key, event });
const signal = () => AbortSignal.timeout(30_000);

function createSpool(t: TestContext): Spool {
  const gitDir = mkdtempSync(join(tmpdir(), 'trivet-spool-'));
  t.after(() => rmSync(gitDir, { recursive: true }));
  return openSpool(gitDir, createStillWorld());
}

function readKeys(spool: Spool): string[] {
  return spool.list().map((file) => {
    const reading = spool.read(file);
    assert.ok(reading.kind === 'entry');
    return reading.entry.key;
  });
}

/** Accepts every entry, and records it. */
function createTaker(): { readonly taken: string[]; readonly send: SendEntry } {
  const taken: string[] = [];
  const send: SendEntry = async ({ key }) => {
    taken.push(key);
    return { kind: 'sent' };
  };
  return { taken, send };
}

test('pushes that are spooled in the same millisecond by several processes are all kept, each in its order', async () => {
  const gitDir = mkdtempSync(join(tmpdir(), 'trivet-spool-'));
  const world = createStillWorld();
  const pushes = Array.from({ length: 20 }, (_, push) => [`${push}-a`, `${push}-b`, `${push}-c`]);
  await Promise.all(pushes.map((keys) => openSpool(gitDir, world).append(keys.map((key) => entryOf(key)))));
  const keys = readKeys(openSpool(gitDir, world));
  assert.deepEqual(keys.toSorted(), pushes.flat().toSorted());
  for (const [push, own] of pushes.entries())
    assert.deepEqual(
      keys.filter((key) => key.startsWith(`${push}-`)),
      own,
    );
  rmSync(gitDir, { recursive: true });
});

test('a push is sent after earlier ones even when the clock was set back', async (t) => {
  const gitDir = mkdtempSync(join(tmpdir(), 'trivet-spool-'));
  t.after(() => rmSync(gitDir, { recursive: true }));
  const world = createStillWorld();
  await openSpool(gitDir, world).append([entryOf('first'), entryOf('second')]);
  writeFileSync(join(gitDir, 'trivet-spool', `${'9'.repeat(16)}.json`), 'null');
  world.moveMs(-3_600_000);
  await openSpool(gitDir, world).append([entryOf('third'), entryOf('fourth')]);
  const { taken, send } = createTaker();
  await sendSpool(openSpool(gitDir, world), send, signal());
  assert.deepEqual(taken, ['first', 'second', 'third', 'fourth']);
});

test('events that an earlier version spooled are sent first', async () => {
  const gitDir = mkdtempSync(join(tmpdir(), 'trivet-spool-'));
  const world = createStillWorld();
  const spool = openSpool(gitDir, world);
  await spool.append([entryOf('new')]);
  const [file = ''] = spool.list();
  const oldName = `${String(Number(file.slice(0, 16)) - 4096).padStart(16, '0')}.json`;
  const text = readFileSync(join(spool.folder, file), 'utf8');
  writeFileSync(join(spool.folder, oldName), text.replace('"new"', '"old"'));
  assert.deepEqual(readKeys(spool), ['old', 'new']);
  rmSync(gitDir, { recursive: true });
});

const answers: [title: string, status: number, name: string, kind: string][] = [
  ['an event that was stored before under its key', 409, 'IDEMPOTENCY_KEY_USED', 'sent'],
  ['another conflict', 409, 'CONFLICT', 'later'],
  ['a service that is overloaded', 503, 'SERVICE_UNAVAILABLE', 'later'],
  ['an event that does not fit', 400, 'BAD_REQUEST', 'refused'],
];
for (const [title, status, name, kind] of answers)
  test(`the outcome for ${title} is ${kind}`, async () => {
    await using service = await startReceiver((_, response) => {
      response.statusCode = status;
      response.end(JSON.stringify({ error_code_name: name, message: 'no' }));
    });
    const send = createHttpSender({ url: new URL(service.url).origin, token: 't' });
    assert.equal((await send(entryOf('git:1'), signal())).kind, kind);
  });

const strangers: [title: string, status: number, location: string | undefined][] = [
  ['a page that answers 200', 200, undefined],
  ['an answer without content', 204, undefined],
  ['a redirection to a page for signing in', 302, '/sign-in'],
  ['a redirection of the POST', 307, '/sign-in'],
];
for (const [title, status, location] of strangers)
  test(`${title} is not the service, so the event waits`, async (t) => {
    await using proxy = await startReceiver(({ path }, response) => {
      if (path === '/sign-in') response.end('<html>');
      else response.writeHead(status, location === undefined ? {} : { location }).end();
    });
    const spool = createSpool(t);
    await spool.append([entryOf('git:1')]);
    const report = await sendSpool(spool, createHttpSender({ url: new URL(proxy.url).origin, token: 't' }), signal());
    assert.deepEqual([report.sent, readKeys(spool)], [0, ['git:1']]);
    assert.ok(report.waiting?.startsWith(location === undefined ? `${status} instead` : `${status} to "/sign-in"`));
    assert.equal(proxy.received.length, 1);
  });

function writeLongFile(path: string): void {
  writeFileSync(path, '');
  truncateSync(path, 2 ** 40);
}

const hostileFiles: [title: string, put: (path: string) => void][] = [
  ['null', (path) => writeFileSync(path, 'null')],
  ['a number', (path) => writeFileSync(path, '7')],
  ['no JSON', (path) => writeFileSync(path, '{')],
  ['nothing', (path) => writeFileSync(path, '')],
  ['an entry without an event', (path) => writeFileSync(path, '{"repository":"a/b","key":"k"}')],
  ['an entry of another path', (path) => writeFileSync(path, JSON.stringify(entryOf('k', '../..')))],
  ['a key with a line break', (path) => writeFileSync(path, JSON.stringify(entryOf('k\r\nx: y')))],
  ['a link to a file without an end', (path) => symlinkSync('/dev/zero', path)],
  ['a link to nowhere', (path) => symlinkSync('/nowhere', path)],
  ['a pipe without a writer', (path) => execFileSync('mkfifo', [path])],
  ['a folder', (path) => mkdirSync(path)],
  ['a file of a terabyte', (path) => writeLongFile(path)],
];
for (const [title, put] of hostileFiles)
  test(`${title} in the spool is set aside, and the entries after it are sent`, async (t) => {
    const spool = createSpool(t);
    await spool.append([entryOf('first'), entryOf('second')]);
    put(join(spool.folder, '0000000000000001.json'));
    const { taken, send } = createTaker();
    const { waiting, refused } = await sendSpool(spool, send, signal());
    assert.deepEqual(taken, ['first', 'second']);
    assert.equal(waiting, undefined);
    assert.match(refused.join(), /"0000000000000001.json" in trivet-spool is not an event/);
    assert.deepEqual(readdirSync(join(spool.folder, 'refused')), ['0000000000000001.json']);
  });

test('an entry that can be neither read nor moved stays, and the entries after it are sent', async (t) => {
  const spool = createSpool(t);
  await spool.append([entryOf('first')]);
  writeFileSync(join(spool.folder, '0000000000000001.json'), 'null');
  writeFileSync(join(spool.folder, 'refused'), 'in the place of the folder');
  const { taken, send } = createTaker();
  const { waiting, stuck } = await sendSpool(spool, send, signal());
  assert.deepEqual(taken, ['first']);
  assert.equal(waiting, undefined);
  assert.deepEqual([...stuck.keys()], ['0000000000000001.json']);
});

test('an entry that waits for its repository holds back no other repository, and is the only one of its own read', async (t) => {
  const spool = createSpool(t);
  await spool.append([entryOf('gone-1', 'grace/old'), entryOf('gone-2', 'grace/old'), entryOf('new')]);
  const tried: string[] = [];
  const send: SendEntry = async ({ key }) => {
    tried.push(key);
    return key === 'new' ? { kind: 'sent' } : { kind: 'later', scope: 'repository', reason: '404' };
  };
  const reads: string[] = [];
  const watched: Spool = {
    ...spool,
    read: (file) => {
      reads.push(file);
      return spool.read(file);
    },
  };
  assert.equal((await sendSpool(watched, send, signal())).waiting, '404');
  assert.deepEqual(tried, ['gone-1', 'new']);
  assert.equal(reads.length, 2);
  assert.deepEqual(readKeys(spool), ['gone-1', 'gone-2']);
});

test('a push reads one entry of a long spool while the service is away', async (t) => {
  const spool = createSpool(t);
  await spool.append(Array.from({ length: 200 }, (_, index) => entryOf(`k${index}`)));
  let reads = 0;
  const read: Spool['read'] = (file) => {
    reads += 1;
    return spool.read(file);
  };
  const send: SendEntry = async () => ({ kind: 'later', scope: 'service', reason: '503' });
  assert.equal((await sendSpool({ ...spool, read }, send, signal())).waiting, '503');
  assert.equal(reads, 1);
});

test('a lock file that cannot be locked is named, and not taken for another sender', async (t) => {
  const spool = createSpool(t);
  await spool.append([entryOf('first')]);
  writeFileSync(join(spool.folder, 'send.lock'), 'x'.repeat(5000));
  const { waiting } = await sendSpool(spool, createTaker().send, signal());
  assert.match(waiting ?? '', /Cannot lock the spool with ".*send\.lock"/);
});

test('one process at a time goes on trying, and an event that is spooled as it ends is sent', async (t) => {
  const spool = createSpool(t);
  await spool.append([entryOf('first')]);
  const untilMs = Date.UTC(2100, 0);
  const asleep = Promise.withResolvers<void>();
  const woken = Promise.withResolvers<void>();
  const sleep = async () => {
    asleep.resolve();
    await woken.promise;
  };
  let isThere = false;
  const { taken, send } = createTaker();
  const sendWhenThere: SendEntry = async (entry, aborted) =>
    isThere ? await send(entry, aborted) : { kind: 'later', scope: 'service', reason: '503' };
  const world = { ...createStillWorld(), sleep };
  const patient = sendPatiently(spool, sendWhenThere, { untilMs, world });
  await asleep.promise;
  const second = await sendPatiently(spool, sendWhenThere, { untilMs, world });
  assert.equal(second.waiting, 'another process is sending');
  isThere = true;
  woken.resolve();
  assert.equal((await patient).waiting, undefined);
  assert.deepEqual(taken, ['first']);
});
