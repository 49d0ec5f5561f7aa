import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readPeakRssMb, resetPeakRss } from '../bench/support/peak-memory.ts';

const isLinux = process.platform === 'linux';

test('readPeakRssMb() sees memory that is given back before it is read', { skip: !isLinux }, () => {
  resetPeakRss(process.pid);
  const before = readPeakRssMb(process.pid) ?? 0;
  // Far above what the heap of this process takes or gives back meanwhile.
  fillBriefly(256);
  assert.ok((readPeakRssMb(process.pid) ?? 0) > before + 200);
});

test('readPeakRssMb() is undefined of a process that is gone', () => {
  assert.equal(readPeakRssMb(2 ** 30), undefined);
});

function fillBriefly(megabytes: number): void {
  const bytes = new ArrayBuffer(megabytes * 2 ** 20);
  new Uint8Array(bytes).fill(1);
  bytes.transfer(0);
}
