import assert from 'node:assert/strict';
import { once } from 'node:events';
import { getPriority } from 'node:os';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';

test('a thread that lowers its priority leaves that of the others alone', {
  skip: process.platform !== 'linux' && 'only Linux keeps the priority of each thread',
}, async () => {
  const module = new URL('./lower-priority.ts', import.meta.url).href;
  const before = getPriority(0);
  const thread = new Worker(
    `const { parentPort } = require('node:worker_threads');
     const { getPriority } = require('node:os');
     import(${JSON.stringify(module)}).then(({ lowerThreadPriority }) => {
       lowerThreadPriority();
       parentPort.postMessage(getPriority(0));
     });`,
    { eval: true },
  );
  const [lowered] = (await once(thread, 'message')) as [number];
  assert.equal(lowered, Math.max(15, before));
  assert.equal(getPriority(0), before);
});
