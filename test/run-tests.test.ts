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

const SKIPPING_TEST = `import { describe, test } from 'node:test';
test('runs', { skip: false }, () => {});
describe('a group', () => test('skips', (t) => t.skip('a tool is missing')));
test('is to do', { todo: true }, () => {});`;

function startTests(files: Readonly<Record<string, string>>, environment: Readonly<Record<string, string>> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-run-tests-'));
  const common = {
    'package.json': '{"type":"module"}',
    'test/support/global-setup.ts': SETUP,
    'test/allowed-skips.json': '[]',
  };
  const all = { ...common, ...files };
  for (const [name, content] of Object.entries(all)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  // Without it, the runner believes that it runs in a file of tests.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const program: ChildProcessByStdio<null, Readable, Readable> = spawn(process.execPath, [SCRIPT], {
    cwd: folder,
    env: { ...env, ...environment },
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

async function runSkippingTest(CI: string, titles: readonly string[]): Promise<{ code: unknown; end: string }> {
  const allowed = titles.map((title) => ({ file: 'src/skipping.test.ts', title, reason: 'for this test' }));
  const files = { 'src/skipping.test.ts': SKIPPING_TEST, 'test/allowed-skips.json': JSON.stringify(allowed) };
  using tests = startTests(files, { CI });
  const output = text(tests.program.stdout);
  const [code] = await once(tests.program, 'exit');
  return { code, end: (await output).replace(/^.*took longest:\n.*?\n/s, '') };
}

test('a run of all tests with CI=true fails for each test that was skipped', async () => {
  assert.deepEqual(await runSkippingTest('true', []), {
    code: 1,
    end: `Skipped, and not in test/allowed-skips.json:
  src/skipping.test.ts: skips
  src/skipping.test.ts: is to do
`,
  });
});

test('a run of all tests lets those be skipped that have a reason', async () => {
  assert.deepEqual(await runSkippingTest('true', ['skips', 'is to do']), { code: 0, end: '' });
});

test('a run of all tests fails for an allowed skip that is of no test', async () => {
  assert.deepEqual(await runSkippingTest('true', ['skips', 'is to do', 'is gone']), {
    code: 1,
    end: 'In test/allowed-skips.json, and no test:\n  src/skipping.test.ts: is gone\n',
  });
});

test('a run of all tests without CI=true may skip any', async () => {
  assert.deepEqual(await runSkippingTest('', []), { code: 0, end: '' });
});

test('a run of all tests fails for a title of another form, with its parameters', async () => {
  const file = `import { test } from 'node:test';\nfor (const name of ['rows', 'Rows']) test(name + ' are read', () => {});`;
  using tests = startTests({ 'src/titles.test.ts': file }, { CI: '' });
  const output = text(tests.program.stdout);
  const [code] = await once(tests.program, 'exit');
  assert.equal(code, 1);
  assert.match(
    await output,
    /\nTitles of another form:\n {2}src\/titles\.test\.ts: "Rows are read" begins with a capital\n$/,
  );
});
