import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createStillWorld } from '../../../test/support/still-world.ts';
import { createSampleEvent } from '../sample-event.ts';
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
