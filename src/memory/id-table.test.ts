import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openCollector } from './garbage.ts';
import { IdTable } from './id-table.ts';

interface Entry {
  readonly id: number;
}

test('an entry is found by its id while it is in the table, and not after', () => {
  const table = new IdTable<Entry>();
  const model = new Map<number, Entry>();
  let state = 1;
  const random = (below: number): number => {
    state = (Math.imul(state, 48_271) >>> 0) % 0x7fff_ffff;
    return state % below;
  };
  for (let step = 0; step < 20_000; step++) {
    // Every other id shares its first slot with many others.
    const id = random(2) === 0 ? 1 + 2 * random(300) : 1 + 4096 * random(300);
    const known = model.get(id);
    assert.equal(table.get(id), known);
    if (known !== undefined) {
      assert.equal(table.delete(known), true);
      model.delete(id);
    } else if (step % 5000 < 4000) {
      const entry = { id };
      table.add(entry);
      model.set(id, entry);
    }
    assert.equal(table.size, model.size);
  }
  assert.deepEqual(
    table.list(),
    [...model.values()].sort((left, right) => left.id - right.id),
  );
});

test('another entry with the same id is not deleted', () => {
  const table = new IdTable<Entry>();
  const entry = { id: 7 };
  table.add(entry);
  assert.equal(table.delete({ id: 7 }), false);
  assert.equal(table.delete({ id: 9 }), false);
  assert.equal(table.get(7), entry);
});

test('to look at all entries leaves no garbage', () => {
  const table = new IdTable<Entry>();
  for (let id = 1; id < 2000; id += 2) table.add({ id });
  // Not a variable: some of V8's compiled code would put each new value of it on the heap.
  const sum = new Int32Array(1);
  const add = ({ id }: Entry): void => {
    sum[0] = (sum[0] ?? 0) + id;
  };
  const { collectAll } = openCollector();
  const measureBytes = (): number => {
    collectAll();
    const before = process.memoryUsage().heapUsed;
    for (let round = 0; round < 100; round++) table.visit(add);
    return process.memoryUsage().heapUsed - before;
  };
  // V8 puts the code that it compiles in the background on the same heap, so some samples have more than the visits left.
  const samples = Array.from({ length: 10 }, measureBytes);
  assert.equal(sum[0], 1000 * 1_000_000);
  // Garbage of 32 bytes for each entry would be 3 MB in each sample.
  assert.ok(Math.min(...samples) < 500_000, `${samples.join(', ')} bytes`);
});

test('a table that had many entries shrinks when it has few', () => {
  const { collectAll } = openCollector();
  const measureBytes = (): number => {
    collectAll();
    return process.memoryUsage().heapUsed;
  };
  const before = measureBytes();
  const tables = Array.from({ length: 100 }, () => {
    const table = new IdTable<Entry>();
    const entries = Array.from({ length: 1000 }, (_, index) => ({ id: 2 * index + 1 }));
    for (const entry of entries) table.add(entry);
    for (const entry of entries.slice(1).reverse()) table.delete(entry);
    return table;
  });
  // Slots for all former entries would be 16 KB in each table.
  const bytes = measureBytes() - before;
  assert.ok(tables.every((table) => table.list().length === 1));
  assert.ok(bytes < 800_000, `${bytes} bytes`);
});
