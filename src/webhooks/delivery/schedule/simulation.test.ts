/** Deliveries of several owners whose receivers fail in different ways, in virtual time, so that counts are exact. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Answer,
  createSimulation,
  ERROR,
  listWaits,
  NO_CONNECTION,
  OK,
  SILENCE,
  type SimulatedHook,
} from '../../../../test/support/webhooks/delivery-simulation.ts';
import type { Outcome } from './attempt-outcome.ts';

const SHARED = 'https://gateway.example.com';
const SECOND = 1000;
const MINUTE = 60 * SECOND;

const quick: Answer = () => ({ outcome: OK, afterMs: 5 });
const always =
  (outcome: Outcome, afterMs = 5): Answer =>
  () => ({ outcome, afterMs });
const failing =
  (share: number): Answer =>
  ({ random }) => ({ outcome: random < share ? ERROR : OK, afterMs: 5 });
const refusing = (status: number, retryAfterMs: number): Answer => always({ kind: 'refused', status, retryAfterMs });
const hook = (hookId: number, ownerId: string, answer: Answer, origin = SHARED): SimulatedHook => ({
  hookId,
  ownerId,
  origin,
  answer,
});

const hookIdsFrom = (first: number, count: number) => Array.from({ length: count }, (_, index) => first + index);

/** 50 hooks of one owner, which is what a repository may have. */
const manyHooks = (ownerId: string, answer: Answer) =>
  Array.from({ length: 50 }, (_, index) => hook(100 + index, ownerId, answer));

test("one owner's failing hook takes nothing from another owner's hook on the same origin", () => {
  const simulation = createSimulation([hook(1, 'failing', always(ERROR)), hook(2, 'healthy', quick)]);
  simulation.enqueue(1, { everyMs: 50, count: 1200 });
  simulation.enqueue(2, { everyMs: 100, count: 600 });
  simulation.run(MINUTE);
  const healthy = simulation.hookQueues.get(2);
  assert.equal(healthy?.all.filter(({ state }) => state === 'succeeded').length, 600);
  assert.equal(Math.max(...listWaits(healthy, MINUTE)), 0);
  // Five attempts, and probes after 5, 10 and 20 s.
  assert.equal(simulation.hookQueues.get(1)?.attemptsAtMs.length, 8);
});

const malicious: [title: string, answer: Answer][] = [
  ['answer 500', always(ERROR)],
  ['never answer', always(SILENCE, 15_000)],
  ['answer after 14 s', always(OK, 14_000)],
  ['ask to wait for a day', refusing(429, 86_400_000)],
  ['answer 503 and ask to wait for a day', refusing(503, 86_400_000)],
];
for (const [title, answer] of malicious)
  test(`fifty hooks of one owner that ${title} delay no other owner at their origin`, () => {
    const simulation = createSimulation([...manyHooks('malicious', answer), hook(1, 'healthy', quick)]);
    for (let hookId = 100; hookId < 150; hookId += 1) simulation.enqueue(hookId, { count: 40 });
    simulation.enqueue(1, { fromMs: 10, everyMs: 200, count: 600 });
    let most = 0;
    simulation.run(2 * MINUTE, () => {
      most = Math.max(most, simulation.sending);
    });
    assert.equal(Math.max(...listWaits(simulation.hookQueues.get(1), 2 * MINUTE)), 0);
    assert.ok(most <= 9, `${most} were under way at once`);
  });

test('a silent path does not block the recovery of its origin for others after an outage', () => {
  const isDown = (nowMs: number) => nowMs < MINUTE;
  const unless =
    (answer: Answer): Answer =>
    (request) =>
      isDown(request.nowMs) ? { outcome: NO_CONNECTION, afterMs: 1 } : answer(request);
  const hooks = [...manyHooks('malicious', unless(always(SILENCE, 15_000))), hook(200, 'healthy', unless(quick))];
  const simulation = createSimulation(hooks);
  for (let hookId = 100; hookId < 150; hookId += 1) simulation.enqueue(hookId, { count: 40 });
  simulation.enqueue(200, { count: 10 });
  let recoveredAtMs: number | undefined;
  simulation.run(3 * MINUTE, (nowMs) => {
    if (!isDown(nowMs) && simulation.sending > 0) recoveredAtMs ??= nowMs;
  });
  const healthy = simulation.hookQueues.get(200)!;
  const sent = healthy.attemptsAtMs.filter((atMs) => !isDown(atMs));
  assert.ok(recoveredAtMs !== undefined && sent[0]! - recoveredAtMs <= SECOND, `${sent[0]} after ${recoveredAtMs}`);
});

for (const [share, leastFirst] of [
  [0.2, 5900],
  [0.3, 5400],
  [0.5, 2000],
] as const)
  test(`a receiver that refuses ${100 * share} % at random keeps its first attempts, at 150 a second`, () => {
    for (let seed = 1; seed <= 5; seed += 1) {
      const simulation = createSimulation([hook(1, 'owner', failing(share))], seed);
      simulation.enqueue(1, { everyMs: 1000 / 150, count: 6000 });
      simulation.run(40 * SECOND);
      const attempted = simulation.hookQueues.get(1)?.all.filter(({ attempts }) => attempts > 0).length ?? 0;
      assert.ok(attempted >= leastFirst, `${attempted} of 6000 with seed ${seed}`);
    }
  });

for (const [title, outcome] of [
  ['refuses connections', NO_CONNECTION],
  ['answers 503', ERROR],
] as const)
  test(`a receiver that ${title} for ten minutes gets few attempts, and all that waits once it works`, () => {
    const downMs = 10 * MINUTE;
    const answer: Answer = ({ nowMs }) => ({ outcome: nowMs < downMs ? outcome : OK, afterMs: 5 });
    const simulation = createSimulation([hook(1, 'owner', answer)]);
    simulation.enqueue(1, { everyMs: 500, count: 1200 });
    const steps = new Set<number>();
    simulation.run(40 * MINUTE, (nowMs) => {
      if (nowMs >= downMs && simulation.sending > 0) steps.add(simulation.sending);
    });
    const { all, attemptsAtMs } = simulation.hookQueues.get(1)!;
    // Five attempts, then probes after 5, 10, 20, 40, 80, 160 and 300 s.
    assert.ok(attemptsAtMs.filter((atMs) => atMs < downMs).length <= 14);
    assert.equal(all.filter(({ state }) => state !== 'succeeded').length, 0);
    assert.deepEqual([...steps].slice(0, 3), [1, 2, 4]);
  });

test('each failed probe of an origin is made by another hook', () => {
  const down = always(NO_CONNECTION, 1);
  const simulation = createSimulation([hook(1, 'a', down), hook(2, 'b', down), hook(3, 'c', down)]);
  for (const hookId of [1, 2, 3]) simulation.enqueue(hookId, { count: 100 });
  const probes: number[] = [];
  const counts = new Map<number, number>();
  simulation.run(20 * MINUTE, (nowMs) => {
    for (const [hookId, { attemptsAtMs }] of simulation.hookQueues) {
      if (nowMs > SECOND && attemptsAtMs.length > (counts.get(hookId) ?? 0)) probes.push(hookId);
      counts.set(hookId, attemptsAtMs.length);
    }
  });
  assert.ok(probes.length >= 7);
  for (let index = 1; index < probes.length; index += 1) assert.notEqual(probes[index], probes[index - 1]);
});

test('a slow receiver delays neither the other hooks of its owner nor other owners', () => {
  const slow = hook(1, 'owner', always(OK, 2000), 'https://slow.example.com');
  const simulation = createSimulation([
    slow,
    hook(2, 'owner', quick, 'https://quick.example.com'),
    hook(3, 'other', quick),
  ]);
  simulation.enqueue(1, { count: 400 });
  for (const hookId of [2, 3]) simulation.enqueue(hookId, { fromMs: 10, everyMs: 10, count: 2000 });
  simulation.run(MINUTE);
  for (const hookId of [2, 3])
    assert.ok(Math.max(...listWaits(simulation.hookQueues.get(hookId), MINUTE)) <= 20, `hook ${hookId}`);
  assert.equal(simulation.hookQueues.get(1)?.attemptsAtMs.length, (4 * MINUTE) / 2000);
});

for (const [title, originOf, outcome] of [
  ['hooks', (hookId: number) => `https://o${hookId}.example.com`, ERROR],
  ['an origin', () => SHARED, NO_CONNECTION],
] as const)
  test(`after a clock that went back the pauses of ${title} end once more, and all that waits is sent`, () => {
    const answer: Answer = ({ nowMs }) => (nowMs < SECOND ? { outcome, afterMs: 5 } : { outcome: OK, afterMs: 2000 });
    const slow = hookIdsFrom(101, 32).map((hookId) =>
      hook(hookId, 'owner', always(OK, 8000), `https://s${hookId}.com`),
    );
    const paused = hookIdsFrom(1, 40).map((hookId) => hook(hookId, 'owner', answer, originOf(hookId)));
    const simulation = createSimulation([...paused, ...slow]);
    for (const { hookId } of paused) simulation.enqueue(hookId, { count: 6 });
    // They take all slots of their owner before the first pauses end, and free them after the clock has gone back.
    for (const { hookId } of slow) simulation.enqueue(hookId, { fromMs: 3 * SECOND, count: 1 });
    simulation.moveClock(10 * SECOND, -8 * SECOND);
    simulation.enqueue(101, { fromMs: 12 * SECOND, everyMs: 100, count: 100 });
    simulation.run(10 * MINUTE);
    const stuck = [...simulation.hookQueues.values()].flatMap(({ pending }) => pending);
    assert.deepEqual(
      stuck.map(({ hookId }) => hookId),
      [],
    );
  });

test('429 with Retry-After stops its hook until then, and no other', () => {
  const simulation = createSimulation([hook(1, 'owner', refusing(429, 30_000)), hook(2, 'owner', quick)]);
  simulation.enqueue(1, { everyMs: 100, count: 250 });
  simulation.enqueue(2, { everyMs: 100, count: 250 });
  simulation.run(25 * SECOND);
  assert.equal(simulation.hookQueues.get(1)?.attemptsAtMs.length, 1);
  assert.equal(simulation.hookQueues.get(1)?.row.pause_reason, 'retry_after');
  assert.equal(Math.max(...listWaits(simulation.hookQueues.get(2), MINUTE)), 0);
});

test('a receiver that takes five in two seconds gets most of what it takes, and few beyond', () => {
  let window = { fromMs: 0, count: 0 };
  const limited: Answer = ({ nowMs }) => {
    if (nowMs - window.fromMs >= 2000) window = { fromMs: nowMs, count: 0 };
    window.count += 1;
    const retryAfterMs = window.fromMs + 2000 - nowMs;
    return { outcome: window.count <= 5 ? OK : { kind: 'refused', status: 429, retryAfterMs }, afterMs: 5 };
  };
  const simulation = createSimulation([hook(1, 'owner', limited)]);
  simulation.enqueue(1, { count: 2000 });
  simulation.run(2 * MINUTE);
  const { all, attemptsAtMs } = simulation.hookQueues.get(1)!;
  const accepted = all.filter(({ state }) => state === 'succeeded').length;
  assert.ok(accepted >= 240, `${accepted} of 300 were accepted`);
  // Three in each of 60 windows: the attempts that were under way when the first was refused.
  assert.ok(attemptsAtMs.length - accepted <= 180, `${attemptsAtMs.length - accepted} were refused`);
});

test('owners share the slots of an origin evenly, however many hooks each has', () => {
  const few = Array.from({ length: 2 }, (_, index) => hook(1 + index, 'few', always(OK, 1000)));
  const simulation = createSimulation([...manyHooks('many', always(OK, 1000)), ...few]);
  for (const { hookId } of few) simulation.enqueue(hookId, { count: 500 });
  for (let hookId = 100; hookId < 150; hookId += 1) simulation.enqueue(hookId, { count: 100 });
  simulation.run(MINUTE);
  const counts = { few: 0, many: 0 };
  for (const { hook: one, attemptsAtMs } of simulation.hookQueues.values())
    counts[one.ownerId as keyof typeof counts] += attemptsAtMs.length;
  assert.ok(Math.abs(counts.few - counts.many) <= 0.1 * counts.many, JSON.stringify(counts));
});

test('owners with slow receivers leave slots of the worker to owners that have none', () => {
  const slowOwners = Array.from({ length: 12 }, (_, owner) =>
    Array.from({ length: 10 }, (__, index) =>
      hook(1000 + 10 * owner + index, `slow ${owner}`, always(OK, 14_000), `https://o${owner}-${index}.example.com`),
    ),
  ).flat();
  const simulation = createSimulation([...slowOwners, hook(1, 'healthy', quick)]);
  for (const { hookId } of slowOwners) simulation.enqueue(hookId, { count: 100 });
  simulation.enqueue(1, { fromMs: MINUTE, everyMs: 100, count: 600 });
  simulation.run(2 * MINUTE);
  assert.equal(Math.max(...listWaits(simulation.hookQueues.get(1), 2 * MINUTE)), 0);
});

test('when several owners fill an origin, the next owner gets the first free slot', () => {
  const slow = (owner: number) =>
    Array.from({ length: 5 }, (_, index) => hook(100 * owner + index, `slow ${owner}`, always(OK, 14_000)));
  const owners = [1, 2, 3, 4, 5, 6].flatMap(slow);
  const simulation = createSimulation([...owners, hook(1, 'healthy', quick)]);
  for (const { hookId } of owners) simulation.enqueue(hookId, { fromMs: Math.floor(hookId / 100), count: 100 });
  simulation.enqueue(1, { fromMs: SECOND, everyMs: 500, count: 200 });
  simulation.run(2 * MINUTE);
  const waits = listWaits(simulation.hookQueues.get(1), 2 * MINUTE);
  assert.ok(Math.max(...waits) <= 15 * SECOND, `${Math.max(...waits)}`);
  // Only deliveries that came before the first attempts of the slow owners had ended.
  assert.ok(waits.filter((wait) => wait > 0).length <= 28, `${waits.filter((wait) => wait > 0).length}`);
});
