import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createServerIndex } from './server-index.ts';

const ADDRESSES = 200;

/** Addresses of 8 bytes that share one slot of 16,384 under FNV-1a from its well-known start. */
function collide(): Uint8Array[] {
  const found: Uint8Array[] = [];
  for (let number = 0; found.length < ADDRESSES; number++) {
    const address = Buffer.from(number.toString().padStart(8, '0'));
    let hash = 0x811c9dc5;
    for (const byte of address) hash = Math.imul(hash ^ byte, 0x01000193);
    if (((hash ^ (hash >>> 15)) & 16_383) === 0) found.push(address);
  }
  return found;
}

test('createServerIndex() finds addresses that were chosen to collide without looking through all of them', () => {
  const servers = createServerIndex(8192);
  const addresses = collide();
  const numbers = addresses.map((address) => servers.ensure(address));
  let reads = 0;
  const count = (address: Uint8Array) =>
    new Proxy(address, {
      get(target, key) {
        reads += 1;
        return Reflect.get(target, key) as unknown;
      },
    });
  for (const [i, address] of addresses.entries()) assert.equal(servers.find(count(address), 0, 8), numbers[i]);
  // Each is hashed and compared once: 16 reads, and those of a few neighbours.
  assert.ok(reads < 25 * ADDRESSES, `${reads} bytes were read`);
});
