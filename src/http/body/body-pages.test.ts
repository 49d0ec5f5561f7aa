import assert from 'node:assert/strict';
import { constants, PerformanceObserver } from 'node:perf_hooks';
import { test } from 'node:test';
import { setImmediate as endOfTurn } from 'node:timers/promises';
import { openCollector } from '../../memory/garbage.ts';
import { PAGE_BYTES, PagedBytes, PagePool } from './body-pages.ts';

test('bytes come out as they went in, whatever the lengths of their parts', () => {
  const pool = new PagePool();
  const sizes = [1, PAGE_BYTES - 2, 1, 1, 3 * PAGE_BYTES, 17, PAGE_BYTES];
  for (let round = 1; round < 4; round++) {
    const body = new PagedBytes(pool);
    const parts = sizes.map((size, index) => Buffer.alloc(size, round * index));
    for (const part of parts) body.push(part);
    assert.ok(body.take().equals(Buffer.concat(parts)));
    assert.equal(body.heldBytes, 0);
  }
});

test('a body that was taken stays as it is when its pages are used again', () => {
  const pool = new PagePool();
  const [first, second] = [new PagedBytes(pool), new PagedBytes(pool)];
  first.push(Buffer.alloc(2 * PAGE_BYTES, 1));
  const taken = first.take();
  second.push(Buffer.alloc(2 * PAGE_BYTES, 2));
  assert.ok(taken.every((byte) => byte === 1));
});

test('pages are used again', () => {
  const pool = new PagePool();
  const pages = new Set(Array.from({ length: 40 }, () => pool.take()));
  for (const page of pages) pool.giveBack(page);
  for (let page = 0; page < 40; page++) assert.ok(pages.has(pool.take()));
});

test('200 MB of pages bring about no collection of the whole heap', async () => {
  const { collectAll } = openCollector();
  collectAll();
  let collections = 0;
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries())
      if ((entry as { detail?: { kind?: number } }).detail?.kind !== constants.NODE_PERFORMANCE_GC_MINOR) collections++;
  });
  observer.observe({ entryTypes: ['gc'] });
  const body = new PagedBytes(new PagePool());
  const part = Buffer.alloc(65_536);
  for (let turn = 0; turn < 200; turn++) {
    for (let read = 0; read < 16; read++) body.push(part);
    await endOfTurn();
  }
  await endOfTurn();
  observer.disconnect();
  assert.equal(body.heldBytes, 200 * 1_048_576);
  assert.equal(collections, 0);
});
