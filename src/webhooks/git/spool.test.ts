import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startReceiver } from '../../../test/support/receiver.ts';
import { createStillWorld } from '../../../test/support/still-world.ts';
import { createSampleEvent } from '../events/sample-event.ts';
import { createHttpSender } from './send-spool.ts';
import { openSpool } from './spool.ts';

const event = createSampleEvent('push', { username: 'grace', name: 'Grace' }, 'main', 0);
const entryOf = (key: string) => ({ repository: 'grace/doors', key, event });

test('pushes that are spooled in the same millisecond by several processes are all kept, each in its order', async () => {
  const gitDir = mkdtempSync(join(tmpdir(), 'trivet-spool-'));
  const world = createStillWorld();
  const pushes = Array.from({ length: 20 }, (_, push) => [`${push}-a`, `${push}-b`, `${push}-c`]);
  await Promise.all(pushes.map((keys) => openSpool(gitDir, world).append(keys.map(entryOf))));
  const keys = openSpool(gitDir, world)
    .list()
    .map(({ entry }) => entry.key);
  assert.deepEqual(keys.toSorted(), pushes.flat().toSorted());
  for (const [push, own] of pushes.entries())
    assert.deepEqual(
      keys.filter((key) => key.startsWith(`${push}-`)),
      own,
    );
  rmSync(gitDir, { recursive: true });
});

test('what an earlier version has spooled is sent first', async () => {
  const gitDir = mkdtempSync(join(tmpdir(), 'trivet-spool-'));
  const world = createStillWorld();
  const spool = openSpool(gitDir, world);
  await spool.append([entryOf('new')]);
  const [{ file } = { file: '' }] = spool.list();
  const oldName = `${String(Number(file.slice(0, 16)) - 4096).padStart(16, '0')}.json`;
  const text = readFileSync(join(spool.folder, file), 'utf8');
  writeFileSync(join(spool.folder, oldName), text.replace('"new"', '"old"'));
  assert.deepEqual(
    spool.list().map(({ entry }) => entry.key),
    ['old', 'new'],
  );
  rmSync(gitDir, { recursive: true });
});

const answers: [title: string, status: number, name: string, kind: string][] = [
  ['an event that was stored before under its key', 409, 'IDEMPOTENCY_KEY_USED', 'sent'],
  ['another conflict', 409, 'CONFLICT', 'later'],
  ['a service that cannot now', 503, 'SERVICE_UNAVAILABLE', 'later'],
  ['an event that does not fit', 400, 'BAD_REQUEST', 'refused'],
];
for (const [title, status, name, kind] of answers)
  test(`what becomes of ${title}: ${kind}`, async () => {
    await using service = await startReceiver((_, response) => {
      response.statusCode = status;
      response.end(JSON.stringify({ error_code_name: name, message: 'no' }));
    });
    const send = createHttpSender({ url: new URL(service.url).origin, token: 't' });
    assert.equal((await send(entryOf('git:1'), AbortSignal.timeout(30_000))).kind, kind);
  });
