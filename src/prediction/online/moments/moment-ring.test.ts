import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMomentRing, type MomentRing, type NotedOwners } from './moment-ring.ts';

const OWNERS: NotedOwners = { target: 'ttft', address: Uint8Array.of(1), podType: 0, slot: '' };

function addTime(ring: MomentRing<'part'>, value: number, sentAfter?: number): void {
  ring.add(OWNERS, { knownMs: 1000 * ring.observedTimes, sentAfter }, { part: [value] });
}

test('a count that is noted stays as it is, however large', () => {
  const ring = createMomentRing({ part: 1 });
  addTime(ring, 2 ** 33 + 1);
  assert.deepEqual([...ring.read(0, 'part')], [2 ** 33 + 1]);
});

test('requests of late clocks, half of all, do not move the assumed dispatch further back', () => {
  const ring = createMomentRing({ part: 1 });
  for (let i = 0; i < 4000; i++) addTime(ring, i, i % 2 === 0 ? ring.countBy(0) : ring.observedTimes - Math.min(i, 5));
  assert.ok(ring.observedTimes - ring.countBy(0) <= 64 + 8 * 6, `${ring.observedTimes - ring.countBy(0)} times ago`);
});

test('requests that are under way for longer than those before are dated to their own dispatch', () => {
  const ring = createMomentRing({ part: 1 });
  for (let i = 0; i < 2000; i++) {
    const sent = Math.max(0, i - 300);
    addTime(ring, i, ring.countBy(1000 * sent - 1));
  }
  assert.equal(ring.countBy(1000 * (ring.observedTimes - 300) - 1), ring.observedTimes - 300);
});

test('after a clock was set back, requests count from their own dispatch again', () => {
  const ring = createMomentRing({ part: 1 });
  const add = (knownMs: number) => ring.add(OWNERS, { knownMs }, { part: [0] });
  for (let i = 0; i < 500; i++) add(3_600_000 + 1000 * i);
  for (let i = 0; i < 100; i++) add(1000 * i);
  assert.equal(ring.countBy(90_000), 591);
  assert.equal(ring.countBy(95_500), 596);
});
