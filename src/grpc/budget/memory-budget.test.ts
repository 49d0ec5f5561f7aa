/** How many calls are ended when the memory of all connections is used up. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryBudget } from './memory-budget.ts';

test('of thousands of small calls few are ended at a time, and of large ones until there is room for many frames', () => {
  assert.ok(countEnded({ calls: 10_000, bytes: 100 }) <= 40);
  const calls = 64;
  assert.equal(countEnded({ calls, bytes: 100_000 }), calls / 16 + 1);
});

/** Such calls fill the memory, and one more arrives. */
function countEnded({ calls, bytes }: { readonly calls: number; readonly bytes: number }): number {
  const budget = new MemoryBudget(calls * bytes, () => 0);
  let ended = 0;
  const account = budget.createAccount({
    network: { connections: 1, reservedBytes: 0, site: { connections: 1 } },
    shed: () => {
      ended += 1;
      account.give(bytes);
      return true;
    },
  });
  for (let call = 0; call <= calls; call++) account.take(bytes);
  return ended;
}
