import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Linked, LinkedQueue } from './linked-queue.ts';

interface Entry extends Linked<Entry> {
  readonly name: string;
}

function createEntries(names: string): Entry[] {
  return names.split('').map((name) => ({ name, previous: undefined, next: undefined }));
}

function names(queue: LinkedQueue<Entry>): string {
  return queue
    .list()
    .map(({ name }) => name)
    .join('');
}

test('entries stay in the order in which they came, wherever others leave', () => {
  const entries = createEntries('abcde');
  const [a, b, c, d, e] = entries as [Entry, Entry, Entry, Entry, Entry];
  const queue = new LinkedQueue<Entry>();
  for (const entry of entries) queue.add(entry);
  queue.add(b);
  assert.equal(names(queue), 'abcde');
  for (const [left, rest] of [
    [c, 'abde'],
    [a, 'bde'],
    [e, 'bd'],
    [b, 'd'],
    [d, ''],
  ] as const) {
    assert.equal(queue.delete(left), true);
    assert.equal(queue.delete(left), false);
    assert.equal(names(queue), rest);
  }
  assert.equal(queue.first, undefined);
  queue.add(c);
  queue.add(a);
  assert.equal(names(queue), 'ca');
});

test('an entry that has left points to no other, and none to it', () => {
  const [a, b, c] = createEntries('abc') as [Entry, Entry, Entry];
  const queue = new LinkedQueue<Entry>();
  for (const entry of [a, b, c]) queue.add(entry);
  queue.delete(b);
  assert.deepEqual([b.previous, b.next], [undefined, undefined]);
  assert.equal(a.next, c);
  assert.equal(c.previous, a);
});
