/** `npm test`, in a folder with a few files of its own. */
import assert from 'node:assert/strict';
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { waitUntil } from './support/basics/wait-until.ts';

const SCRIPT = resolve('scripts/test.ts');

const SETUP = `import { writeFileSync } from 'node:fs';
export const globalSetup = () => writeFileSync('has-begun', '');
export const globalTeardown = () => writeFileSync('has-ended', '');`;
/** Does not end by itself. */
const LONG_TEST = `import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
test('long', async () => {
  writeFileSync('runs', String(process.pid));
  // Only a signal ends it.
  setInterval(() => {}, 60_000);
  await new Promise(() => {});
});`;

const BRIEF_TEST = `import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
test('brief', () => writeFileSync('brief-has-run', ''));`;
/** Begins before the brief one, and ends two seconds after it has run. */
const SLOW_TEST = `import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
test('slow', async () => {
  // The other file tells nothing.
  while (!existsSync('brief-has-run')) await sleep(20);
  // Its time is what is listed.
  await sleep(2000);
});`;

function startTests(files: Readonly<Record<string, string>>) {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-run-tests-'));
  const all = { 'package.json': '{"type":"module"}', 'test/support/global-setup.ts': SETUP, ...files };
  for (const [name, content] of Object.entries(all)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  // Without it, the runner believes that it runs in a file of tests.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const program: ChildProcessByStdio<null, Readable, Readable> = spawn(process.execPath, [SCRIPT], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return {
    program,
    has: (name: string) => existsSync(join(folder, name)),
    [Symbol.dispose]: () => {
      program.kill('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  test(`a run of all tests that gets ${signal} ends what its files share`, async () => {
    using tests = startTests({ 'test/long.test.ts': LONG_TEST });
    const output = text(tests.program.stdout);
    const exit = once(tests.program, 'exit');
    await waitUntil(() => tests.has('runs'));
    tests.program.kill(signal);
    const [code] = await exit;
    assert.notEqual(code, 0, await output);
    assert.ok(tests.has('has-begun') && tests.has('has-ended'), await output);
  });

test('a run of all tests ends with the files that took longest', async () => {
  using tests = startTests({ 'src/brief.test.ts': BRIEF_TEST, 'test/journeys/slow.test.ts': SLOW_TEST });
  const output = await text(tests.program.stdout);
  assert.match(output, /took longest:\n +\S+ s {2}test\/journeys\/slow\.test\.ts\n +\S+ s {2}src\/brief\.test\.ts\n$/);
});

test('a run of all tests that finds none fails', async () => {
  using tests = startTests({});
  const errors = text(tests.program.stderr);
  const [code] = await once(tests.program, 'exit');
  assert.equal(code, 1);
  assert.match(await errors, /No file of tests was found/);
});
