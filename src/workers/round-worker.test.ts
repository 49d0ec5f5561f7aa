import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Failure } from '../errors.ts';
import { createLog } from '../telemetry/log.ts';
import { realWorld } from '../world.ts';
import { createRoundWorker } from './round-worker.ts';

function createWork(round: (signal: AbortSignal) => Promise<unknown>, restMs = 0) {
  const lines: string[] = [];
  const destination = new Writable({
    write(chunk, _, done) {
      lines.push(String(chunk));
      done();
    },
  });
  const work = createRoundWorker({
    name: 'sweeper',
    restMs,
    world: realWorld,
    log: createLog('info', destination),
    round,
  });
  return { work, lines };
}

test('rounds follow each other, never two at once, until the worker is stopped', async () => {
  const { promise: third, resolve } = Promise.withResolvers<void>();
  let rounds = 0;
  let underWay = 0;
  const { work } = createWork(async () => {
    assert.equal(++underWay, 1);
    await nextTurn();
    underWay--;
    if (++rounds === 3) resolve();
  });
  work.start();
  work.start();
  await third;
  await work.stop();
  const last = rounds;
  // No event shows that no round follows.
  await realWorld.sleep(5);
  assert.equal(rounds, last);
});

test('a round that throws is reported with the name of its worker, and the next one comes', async () => {
  const { promise: second, resolve } = Promise.withResolvers<void>();
  let rounds = 0;
  const { work, lines } = createWork(async () => {
    if (++rounds === 1) throw new Error('the disk is full');
    resolve();
  });
  work.start();
  await second;
  await work.stop();
  assert.equal(lines.length, 1);
  const { level, worker, err } = JSON.parse(lines[0] ?? '') as {
    level: string;
    worker: string;
    err: { message: string };
  };
  assert.deepEqual(
    { level, worker, message: err.message },
    { level: 'error', worker: 'sweeper', message: 'the disk is full' },
  );
});

test('rounds that fail while something is away are one warning, and their end is reported', async () => {
  const { promise: fourth, resolve } = Promise.withResolvers<void>();
  let rounds = 0;
  const { work, lines } = createWork(async () => {
    rounds += 1;
    if (rounds < 3) throw new Failure('unavailable', 'Cannot use the database right now');
    if (rounds === 4) resolve();
  });
  work.start();
  await fourth;
  await work.stop();
  const logged = lines.map((line) => JSON.parse(line) as Record<string, string>);
  assert.deepEqual(
    logged.map(({ level, worker, reason, msg }) => ({ level, worker, reason, msg })),
    [
      {
        level: 'warn',
        worker: 'sweeper',
        reason: 'Cannot use the database right now',
        msg: 'A round of a background worker failed; the next ones try again',
      },
      { level: 'info', worker: 'sweeper', reason: undefined, msg: 'A background worker goes on' },
    ],
  );
});

test('a stop interrupts the rest, aborts the round, waits for it and reports nothing; it may come twice or first', async () => {
  const { work, lines } = createWork(async (signal) => {
    // Only the signal ends it.
    await realWorld.sleep(60_000, signal);
  });
  work.start();
  await work.stop();
  await work.stop();
  assert.deepEqual(lines, []);
  const ended = Promise.withResolvers<void>();
  const resting = createWork(async () => ended.resolve(), 60_000);
  resting.work.start();
  await ended.promise;
  await resting.work.stop();
  const unstarted = createWork(() => assert.fail('a stopped worker does not begin'));
  await unstarted.work.stop();
  unstarted.work.start();
});
