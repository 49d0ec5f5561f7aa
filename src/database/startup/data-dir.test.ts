import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ensureDataDir, findNetworkFileSystem } from './data-dir.ts';

function createFolder(): string {
  return mkdtempSync(join(tmpdir(), 'trivet-test-'));
}

test('ensureDataDir() makes the folder for its owner alone, with the folders above it', () => {
  const folder = createFolder();
  const dataDir = join(folder, 'deep', 'data');
  ensureDataDir(dataDir);
  ensureDataDir(dataDir);
  assert.equal(statSync(dataDir).mode & 0o777, 0o700);
  rmSync(folder, { recursive: true });
});

test('ensureDataDir() refuses at once where no folder can be created', () => {
  assert.throws(() => ensureDataDir('/proc/trivet/data'), /Cannot use the data folder "\/proc\/trivet\/data"/);
});

test('ensureDataDir() names the file that stands where a folder should', () => {
  const folder = createFolder();
  writeFileSync(join(folder, 'file'), '');
  const reason = `"${join(folder, 'file')}" is a file, not a folder`;
  for (const dataDir of [join(folder, 'file'), join(folder, 'file', 'data')])
    assert.throws(() => ensureDataDir(dataDir), {
      code: 'invalid',
      message: `Cannot use the data folder "${dataDir}": ${reason}`,
    });
  rmSync(folder, { recursive: true });
});

test('findNetworkFileSystem() knows NFS and SMB, also when the number came out negative, and lets a local disk pass', () => {
  assert.equal(findNetworkFileSystem(0x6969), 'NFS');
  assert.equal(findNetworkFileSystem(0xff534d42), 'CIFS');
  assert.equal(findNetworkFileSystem(0xff534d42 | 0), 'CIFS');
  assert.equal(findNetworkFileSystem(0xef53), undefined);
  assert.equal(findNetworkFileSystem(statfsSync(tmpdir()).type), undefined);
});
