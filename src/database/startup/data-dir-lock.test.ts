import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { lockDataDir } from './data-dir-lock.ts';

const MODULE = new URL('./data-dir-lock.ts', import.meta.url).href;

async function startHolder(dataDir: string): Promise<ChildProcess> {
  const program = `import { lockDataDir } from '${MODULE}'; globalThis.lock = lockDataDir(process.argv[1]);
    process.stdout.write('locked'); setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program, dataDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  return child;
}

test('lockDataDir() refuses a folder that another process serves, names it, and gets it after kill -9', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'trivet-test-'));
  const holder = await startHolder(dataDir);
  assert.throws(() => lockDataDir(dataDir), {
    code: 'conflict',
    message: `Cannot use the data folder "${dataDir}": it is in use by another trivet (process ${holder.pid})`,
  });
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  lockDataDir(dataDir)[Symbol.dispose]();
  rmSync(dataDir, { recursive: true });
});

test('lockDataDir() is free again once it is given back, also twice', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'trivet-test-'));
  const first = lockDataDir(dataDir);
  assert.throws(() => lockDataDir(dataDir), { code: 'conflict' });
  first[Symbol.dispose]();
  const second = lockDataDir(dataDir);
  first[Symbol.dispose]();
  assert.throws(() => lockDataDir(dataDir), { code: 'conflict' });
  second[Symbol.dispose]();
  rmSync(dataDir, { recursive: true });
});
