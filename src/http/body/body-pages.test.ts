import assert from 'node:assert/strict';
import { constants, PerformanceObserver } from 'node:perf_hooks';
import { test } from 'node:test';
import { setImmediate as endOfTurn } from 'node:timers/promises';
import { freeMemory } from '../../memory/free-memory.ts';
import { openCollector } from '../../memory/garbage.ts';
import { PAGE_BYTES, PagedBytes, PagePool } from './body-pages.ts';

const MIB = 1_048_576;

test('bytes come out as they went in, whatever the lengths of their parts', () => {
  const pool = new PagePool(64 * MIB);
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
  const pool = new PagePool(64 * MIB);
  const [first, second] = [new PagedBytes(pool), new PagedBytes(pool)];
  first.push(Buffer.alloc(2 * PAGE_BYTES, 1));
  const taken = first.take();
  second.push(Buffer.alloc(2 * PAGE_BYTES, 2));
  assert.ok(taken.every((byte) => byte === 1));
});

test('pages are used again', () => {
  const pool = new PagePool(64 * MIB);
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
  const body = new PagedBytes(new PagePool(200 * MIB));
  const part = Buffer.alloc(65_536);
  for (let turn = 0; turn < 200; turn++) {
    for (let read = 0; read < 16; read++) body.push(part);
    await endOfTurn();
  }
  await endOfTurn();
  observer.disconnect();
  assert.equal(body.heldBytes, 200 * MIB);
  assert.equal(collections, 0);
});

test('bytes come out as they went in when they are more than all pages', () => {
  const pool = new PagePool(2 * PAGE_BYTES);
  const sizes = [1, 511, 3584, 1, PAGE_BYTES, 2 * PAGE_BYTES, 10 * PAGE_BYTES];
  const [body, other] = [new PagedBytes(pool), new PagedBytes(pool)];
  const parts = sizes.map((size, index) => Buffer.alloc(size, index + 1));
  for (const part of parts) {
    body.push(part);
    other.push(part.subarray(0, 5000));
  }
  assert.ok(body.take().equals(Buffer.concat(parts)));
  assert.ok(other.take().equals(Buffer.concat(parts.map((part) => part.subarray(0, 5000)))));
});

test('there are only as many shared pages as the pool may have, and others are freed', () => {
  const pool = new PagePool(40 * PAGE_BYTES);
  const pages = Array.from({ length: 50 }, () => pool.take());
  const shared = pages.filter(({ buffer }) => buffer instanceof SharedArrayBuffer);
  assert.equal(shared.length, 40);
  for (const page of pages) pool.giveBack(page);
  assert.deepEqual(new Set(pages.map(({ length }) => length)), new Set([PAGE_BYTES, 0]));
  assert.ok(Array.from({ length: 40 }, () => pool.take()).every((page) => shared.includes(page)));
});

test('a page is given back as soon as it was copied, before the next one is', () => {
  const taken: Uint8Array[] = [];
  class WatchedPool extends PagePool {
    override take(): Uint8Array {
      taken.push(super.take());
      return taken.at(-1)!;
    }
    override giveBack(): void {
      for (const page of taken) page.fill(255);
    }
  }
  const body = new PagedBytes(new WatchedPool(64 * MIB));
  for (let page = 1; page < 4; page++) body.push(Buffer.alloc(PAGE_BYTES, page));
  const whole = body.take();
  assert.deepEqual([whole[0], whole[PAGE_BYTES], whole.at(-1)], [1, 255, 255]);
});

test('a body larger than all pages takes its own memory once, and leaves only the pages', () => {
  const { collectAll } = openCollector();
  collectAll();
  const before = process.memoryUsage.rss();
  const body = new PagedBytes(new PagePool(16 * MIB));
  const part = Buffer.alloc(MIB, 1);
  for (let count = 0; count < 256; count++) body.push(part);
  const whole = body.take();
  assert.ok(process.memoryUsage.rss() - before < 320 * MIB);
  assert.equal(whole.length, 256 * MIB);
  freeMemory(whole);
  assert.ok(process.memoryUsage.rss() - before < 64 * MIB);
});

test('a body of a few bytes takes no page', () => {
  const body = new PagedBytes(new PagePool(64 * MIB));
  body.push(Buffer.alloc(1));
  assert.equal(body.heldBytes, 512);
  body.push(Buffer.alloc(4095));
  assert.equal(body.heldBytes, 4096);
  body.push(Buffer.alloc(1));
  assert.equal(body.heldBytes, PAGE_BYTES);
});
