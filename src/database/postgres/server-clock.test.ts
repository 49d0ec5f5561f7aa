import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLog } from '../../telemetry/log.ts';
import { createServerClock } from './server-clock.ts';

const NOW = 1_000_000_000;
const DAY_MS = 86_400_000;

/** A server whose clock is ahead, and that takes a while to answer. */
async function measureAhead(aheadMs: number, tookMs = 0): Promise<number> {
  let nowMs = NOW;
  const askMs = async () => {
    nowMs += tookMs;
    return nowMs - tookMs / 2 + aheadMs;
  };
  const world = { nowMs: () => nowMs, monotonicMs: () => nowMs };
  const clock = createServerClock({ askMs, world, log: createLog('silent') });
  await clock.measure();
  clock.close();
  return clock.aheadMs;
}

const cases: [title: string, aheadMs: number, tookMs: number, expected: number][] = [
  ['follows a server that is a day ahead', DAY_MS, 0, DAY_MS],
  ['follows a server that is behind', -5000, 0, -5000],
  ['takes half of the time that the answer took off', 5000, 400, 5000],
  ['leaves clocks that agree within a second', 999, 0, 0],
  ['ignores an answer that took long', DAY_MS, 3000, 0],
];
for (const [title, aheadMs, tookMs, expected] of cases)
  test(`ServerClock ${title}`, async () => assert.equal(await measureAhead(aheadMs, tookMs), expected));

test('ServerClock follows this machine when its clock is put right', async () => {
  let nowMs = NOW + DAY_MS;
  const world = { nowMs: () => nowMs, monotonicMs: () => 0 };
  const clock = createServerClock({ askMs: async () => NOW, world, log: createLog('silent') });
  await clock.measure();
  assert.equal(clock.aheadMs, -DAY_MS);
  nowMs = NOW;
  await clock.measure();
  assert.equal(clock.aheadMs, 0);
  clock.close();
});

test('ServerClock asks once for those who ask together', async () => {
  const answer = Promise.withResolvers<number>();
  let asked = 0;
  const askMs = () => {
    asked += 1;
    return answer.promise;
  };
  const world = { nowMs: () => NOW, monotonicMs: () => 0 };
  const clock = createServerClock({ askMs, world, log: createLog('silent') });
  const measured = [clock.measure(), clock.measure()];
  answer.resolve(NOW);
  await Promise.all(measured);
  assert.equal(asked, 1);
  clock.close();
});
