/** However many reports come, few of their events are in memory, few commits store them, and each report gets its turn. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { NOW_MS } from '../../../test/support/prediction/observation-events.ts';
import type { ObservationEvent } from '../schema/observation-event.ts';
import { createDraft, type EventDraft } from './event-draft.ts';
import { EventIntake } from './event-intake.ts';
import { EventQueue, MAX_EVENTS, MAX_LANE_EVENTS } from './event-queue.ts';

interface Commit {
  readonly events: readonly ObservationEvent[];
  readonly end: () => void;
  readonly fail: (error: Error) => void;
}

/** A sink whose commits a test ends, and senders whose reports share the queue before it. */
function createSenders(count: number) {
  const commits: Commit[] = [];
  const report = async (events: readonly ObservationEvent[]) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    commits.push({ events, end: resolve, fail: reject });
    await promise;
    return { accepted: events.length, refusals: [] };
  };
  const queue = new EventQueue({ report });
  const senders = Array.from({ length: count }, () => new Sender(queue));
  return { senders, commits };
}

/** A report whose sender waits for a place with each event. */
class Sender {
  readonly intake: EventIntake;
  #goOn = (): void => {};

  constructor(queue: EventQueue) {
    this.intake = new EventIntake({ queue, nowMs: () => NOW_MS, onRoom: () => this.#goOn() });
  }

  async take(read: () => EventDraft): Promise<void> {
    if (!this.intake.reserve())
      await new Promise<void>((resolve) => {
        this.#goOn = resolve;
      });
    this.intake.take(read, undefined);
  }
}

function draft(requestId: string): EventDraft {
  return { ...createDraft('finished'), requestId };
}

async function send(sender: Sender, name: string, events: number, onRead: (name: string) => void = () => {}) {
  for (let index = 0; index < events; index++)
    await sender.take(() => {
      onRead(name);
      return draft(`${name}-${index}`);
    });
  return sender.intake.finish();
}

test('no more events are read than have a place, and all are stored in the end', async () => {
  const { senders, commits } = createSenders(64);
  let read = 0;
  let stored = 0;
  let isDone = false;
  const sent = senders.map((sender, number) => send(sender, String(number), 100, () => read++));
  const finished = Promise.all(sent).finally(() => {
    isDone = true;
  });
  while (!isDone) {
    await nextTurn();
    assert.ok(read - stored <= MAX_EVENTS, `${read - stored} events`);
    for (const { events, end } of commits.splice(0)) {
      stored += events.length;
      end();
    }
  }
  assert.deepEqual(
    (await finished).map(({ accepted }) => accepted),
    senders.map(() => 100),
  );
});

test('events of many reports share commits', async () => {
  const { senders, commits } = createSenders(MAX_EVENTS);
  const sent = senders.map((sender, number) => send(sender, String(number), 1));
  await nextTurn();
  assert.ok(commits.length <= 4, `${commits.length} commits`);
  assert.equal(commits.flatMap(({ events }) => events).length, MAX_EVENTS);
  for (const { end } of commits) end();
  await Promise.all(sent);
});

test('a report that takes all places of its lane leaves the next ones to those that wait', async () => {
  const { senders, commits } = createSenders(41);
  const read: string[] = [];
  const start = (sender: Sender, number: number) =>
    send(sender, String(number), number === 0 ? 2 * MAX_LANE_EVENTS : 1, (name) => read.push(name));
  // Reports that begin together are spread over four lanes.
  const [first, ...next] = senders.filter((_, number) => number % 4 === 0);
  const greedy = start(first!, 0);
  await nextTurn();
  assert.equal(read.length, MAX_LANE_EVENTS);
  const others = next.map((sender, index) => start(sender, index + 1));
  await nextTurn();
  // The first commit has the first event only, and leaves one place: it is that of the next event of the same report.
  for (let commit = 0; commit < 2; commit++) {
    commits.shift()!.end();
    await nextTurn();
  }
  assert.deepEqual(
    read.slice(MAX_LANE_EVENTS + 1, MAX_LANE_EVENTS + 11),
    next.map((_, index) => String(index + 1)),
  );
  await endAll(commits, Promise.all([greedy, ...others]));
});

/** A sink that never ends the commit of an event whose id begins with "stuck". */
function createStuckQueue(): EventQueue {
  const report = (events: readonly ObservationEvent[]) =>
    events.some(({ requestId }) => requestId.startsWith('stuck'))
      ? new Promise<never>(() => {})
      : Promise.resolve({ accepted: events.length, refusals: [] });
  return new EventQueue({ report });
}

test('a commit that does not end leaves the other lanes their places', async () => {
  const queue = createStuckQueue();
  const senders = Array.from({ length: 8 }, () => new Sender(queue));
  for (const [number, sender] of senders.entries()) if (number % 4 === 0) void send(sender, 'stuck', 2 * MAX_EVENTS);
  const others = senders.filter((_, number) => number % 4 !== 0);
  const summaries = await Promise.all(others.map((sender) => send(sender, 'other', 2 * MAX_EVENTS)));
  for (const { accepted } of summaries) assert.equal(accepted, 2 * MAX_EVENTS);
});

test('a new report goes to a lane whose commits end', async () => {
  const queue = createStuckQueue();
  void send(new Sender(queue), 'stuck', 2 * MAX_EVENTS);
  await nextTurn();
  for (let number = 0; number < 40; number++) {
    const sender = new Sender(queue);
    assert.equal((await send(sender, 'other', 1)).accepted, 1);
    sender.intake.close();
  }
});

test('reports that have ended do not count for their lane', () => {
  const queue = createStuckQueue();
  for (let number = 0; number < 40; number++) new Sender(queue).intake.close();
  const lanes = new Set(Array.from({ length: 4 }, () => queue.openLane()));
  assert.equal(lanes.size, 4);
});

test('a report that is closed stops waiting, and the next gets its turn', async () => {
  const { senders, commits } = createSenders(9);
  const [first, , , , closed, , , , last] = senders;
  const full = send(first!, 'first', MAX_LANE_EVENTS);
  await nextTurn();
  const read: string[] = [];
  void send(closed!, 'closed', 1, (name) => read.push(name));
  const next = send(last!, 'last', 1, (name) => read.push(name));
  closed!.intake.close();
  // The first commit has one event, so that one place is left.
  commits.shift()!.end();
  await nextTurn();
  assert.deepEqual(read, ['last']);
  await endAll(commits, Promise.all([full, next]));
});

test('a report that is closed with a place gives it to the next', async () => {
  const { senders, commits } = createSenders(9);
  const [first, , , , closed, , , , last] = senders;
  const full = send(first!, 'first', MAX_LANE_EVENTS - 1);
  await nextTurn();
  assert.ok(closed!.intake.reserve());
  const read: string[] = [];
  const next = send(last!, 'last', 1, (name) => read.push(name));
  await nextTurn();
  assert.deepEqual(read, []);
  closed!.intake.close();
  await nextTurn();
  assert.deepEqual(read, ['last']);
  await endAll(commits, Promise.all([full, next]));
});

test('an event that cannot be read because of an error of the program frees its place', async () => {
  const { senders, commits } = createSenders(1);
  const [sender] = senders;
  const fault = new TypeError('a fault');
  for (let event = 0; event < 2 * MAX_EVENTS; event++)
    await assert.rejects(
      sender!.take(() => {
        throw fault;
      }),
      fault,
    );
  const sent = send(sender!, 'good', 1);
  await endAll(commits, sent);
  assert.equal((await sent).accepted, 1);
});

test('events of a report are stored one commit after the other, whichever ends first', async () => {
  const { senders, commits } = createSenders(12);
  const underWay = new Set<string>();
  const stored = new Map<string, number>();
  const finished = Promise.all(senders.map((sender, number) => send(sender, String(number), 60)));
  let isDone = false;
  void finished.then(() => {
    isDone = true;
  });
  while (!isDone) {
    await nextTurn();
    const { events, end } = commits.pop() ?? { events: [], end: () => {} };
    for (const { events: others } of commits)
      for (const { requestId } of others) underWay.add(requestId.split('-')[0]!);
    for (const { requestId } of events) {
      const [name = '', index] = requestId.split('-');
      assert.ok(!underWay.has(name), `report ${name} is in two commits`);
      assert.equal(Number(index), stored.get(name) ?? 0);
      stored.set(name, Number(index) + 1);
    }
    underWay.clear();
    end();
  }
});

test('a failed commit fails its own reports, of which nothing more is stored, and no others', async () => {
  const { senders, commits } = createSenders(8);
  const outcomes = Promise.allSettled(senders.map((sender, number) => send(sender, String(number), MAX_EVENTS)));
  await nextTurn();
  const [first] = commits.splice(0, 1);
  const failed = new Set(first!.events.map(({ requestId }) => requestId.split('-')[0]!));
  assert.ok(failed.size < senders.length);
  first!.fail(new Error('The store is away'));
  await nextTurn();
  for (const { events } of commits)
    for (const { requestId } of events) assert.ok(!failed.has(requestId.split('-')[0]!), requestId);
  await endAll(commits, outcomes);
  for (const [number, outcome] of (await outcomes).entries())
    assert.equal(outcome.status, failed.has(String(number)) ? 'rejected' : 'fulfilled', `report ${number}`);
});

async function endAll(commits: Commit[], finished: Promise<unknown>): Promise<void> {
  let isDone = false;
  void finished.then(() => {
    isDone = true;
  });
  while (!isDone) {
    for (const { end } of commits.splice(0)) end();
    await nextTurn();
  }
}
