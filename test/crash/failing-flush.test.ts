import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { skipWithout } from '../support/basics/client-tools.ts';
import { createStorePlace } from '../support/store/engines.ts';
import { compileShim } from './compile-shim.ts';

const skip =
  (process.platform !== 'linux' && 'the shim that lets flushes fail is for Linux') ||
  skipWithout('gcc libc6-dev', ['cc', '--version']);

const folder = mkdtempSync(join(tmpdir(), 'trivet-flush-'));
after(() => rmSync(folder, { recursive: true }));

test('a commit whose flush fails has an unknown outcome, alone and among others, and the writes after it are stored', {
  skip,
}, async () => {
  const place = await createStorePlace('sqlite');
  const writer = fileURLToPath(new URL('./flush-writer.ts', import.meta.url));
  const env = { ...process.env, LD_PRELOAD: compileShim('failing-flush', folder), FAILING_FLUSH: join(folder, 'flag') };
  const output = execFileSync(process.execPath, [writer, place.dataDir], { env, encoding: 'utf8' });
  const answers = output
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as string[]);
  const unknown = 'unavailable, unknown';
  assert.deepEqual(answers, [['stored'], [unknown], [unknown, unknown, unknown], [unknown], ['stored']]);
  rmSync(place.dataDir, { recursive: true });
});
