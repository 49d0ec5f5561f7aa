import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestAnswer, TestOrder } from '../../test/support/basics/background-answers.ts';
import { waitUntil } from '../../test/support/basics/wait-until.ts';
import { askWithin, createBackgroundProcess } from './background-process.ts';

const MODULE = new URL('../../test/support/basics/background-answers.ts', import.meta.url);
const never = new AbortController().signal;

function open() {
  const background = createBackgroundProcess(MODULE);
  const ask = (order: TestOrder, signal = never) => background.ask<TestOrder, TestAnswer>(order, signal);
  return { background, ask, [Symbol.dispose]: () => background.stop() };
}

test('one process, to which others go first, answers one order after the other', async () => {
  using opened = open();
  opened.background.start();
  const first = await opened.ask({ does: 'answer', bytes: Uint8Array.of(1, 2) });
  assert.notEqual(first.pid, process.pid);
  assert.equal(first.niceness, Math.max(10, getPriority()));
  assert.deepEqual([...first.bytes!], [1, 2]);
  assert.equal((await opened.ask({ does: 'answer' })).pid, first.pid);
});

test('what the handler throws is thrown, and the next order is answered', async () => {
  using opened = open();
  await assert.rejects(opened.ask({ does: 'refuse' }), { name: 'RangeError', message: 'Cannot do that' });
  assert.ok((await opened.ask({ does: 'answer' })).pid > 0);
});

test('a process that dies is named with what it said, and the next order has another one', async () => {
  using opened = open();
  await assert.rejects(opened.ask({ does: 'die' }), /ended without an answer \(exit code 3\): famous last words/);
  assert.ok((await opened.ask({ does: 'answer' })).pid > 0);
});

test('aborting ends the process, however long it would have worked', async () => {
  using opened = open();
  const { pid } = await opened.ask({ does: 'answer' });
  const abort = new AbortController();
  const asked = opened.ask({ does: 'work on' }, abort.signal);
  abort.abort();
  await assert.rejects(asked, /SIGKILL/);
  await ended(pid);
  await assert.rejects(opened.ask({ does: 'answer' }, abort.signal), { name: 'AbortError' });
});

test('askWithin() ends a process that does not answer in time, and the next order has another one', async () => {
  using opened = open();
  const { pid } = await opened.ask({ does: 'answer' });
  const limit = { maxMs: 20, describe: (seconds: number) => `Cannot work: more than ${seconds} s`, field: 'does' };
  const asked = askWithin<TestOrder, TestAnswer>(opened.background, { does: 'work on' }, limit);
  const message = 'Cannot work: more than 0.02 s';
  await assert.rejects(asked, { code: 'deadline', message, details: { field: 'does' } });
  await ended(pid);
  const next = await askWithin<TestOrder, TestAnswer>(
    opened.background,
    { does: 'answer' },
    { ...limit, maxMs: 60_000 },
  );
  assert.notEqual(next.pid, pid);
});

test('askWithin() ends with its signal as ask() does, and keeps what the process threw', async () => {
  using opened = open();
  const limit = { maxMs: 60_000, describe: () => 'Cannot work' };
  const abort = new AbortController();
  const asked = askWithin(opened.background, { does: 'work on' }, { ...limit, signal: abort.signal });
  abort.abort();
  await assert.rejects(asked, /SIGKILL/);
  await assert.rejects(askWithin(opened.background, { does: 'refuse' }, limit), { name: 'RangeError' });
});

test('a background process ends with the process that started it, however that ends', async () => {
  using started = startOwner('setInterval(() => {}, 1000);');
  const [said] = (await once(started.owner.stdout, 'data')) as [Buffer];
  const pid = Number(said.toString());
  assert.ok(isThere(pid));
  started.owner.kill('SIGKILL');
  await ended(pid);
});

test('an idle background process does not keep its parent alive', async () => {
  using started = startOwner('');
  assert.deepEqual(await once(started.owner, 'exit'), [0, null]);
});

/** A program that sends one order to its background process, prints the process id of that process, and then does other work. */
function startOwner(then: string) {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-test-'));
  const program = join(folder, 'owner.mjs');
  writeFileSync(
    program,
    `import { createBackgroundProcess } from '${new URL('./background-process.ts', import.meta.url).href}';
     const background = createBackgroundProcess(new URL('${MODULE.href}'));
     const { pid } = await background.ask({ does: 'answer' }, new AbortController().signal);
     console.log(pid);
     ${then}`,
  );
  const owner = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] });
  return {
    owner,
    [Symbol.dispose]() {
      owner.kill('SIGKILL');
      rmSync(folder, { recursive: true });
    },
  };
}

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function ended(pid: number): Promise<void> {
  await waitUntil(() => !isThere(pid));
}
