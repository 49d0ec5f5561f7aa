import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAskedRows } from './asked-rows.ts';
import { createServerState } from './server-state.ts';

/** The slow offset of a server after these residuals. */
function offsetAfter(residuals: readonly number[]): number {
  const state = createServerState({ maxServers: 4, maxPodTypes: 1 });
  const place = { server: state.servers.ensure(Buffer.from('s')), podType: 0 };
  for (const residual of residuals) state.observe(place, 0, residual);
  const asked = createAskedRows(1);
  asked.count = 1;
  asked.servers[0] = place.server;
  state.addOffsets(asked, { position: 0, signal: 0, speed: 1 });
  return asked.expertLogs[0]!;
}

const many = (count: number, residual: number): number[] => Array.from({ length: count }, () => residual);

test('a server twenty times slower than expected is followed all the way', () => {
  const slow = Math.log(20);
  assert.ok(Math.abs(offsetAfter(many(150, slow)) - slow) < 0.15);
  assert.ok(Math.abs(offsetAfter(many(150, -slow)) + slow) < 0.15);
});

test('one request that stalled says no more than one that took e times as long', () =>
  assert.equal(offsetAfter([...many(30, 0), 5]), offsetAfter([...many(30, 0), 1])));
