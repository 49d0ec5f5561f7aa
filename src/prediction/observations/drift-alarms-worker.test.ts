import assert from 'node:assert/strict';
import { Registry } from 'prom-client';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import { SWEEP_BATCH } from '../../database/sweep.ts';
import { createLog } from '../../telemetry/log.ts';
import { addAlarmsStatements, forgetDriftAlarms, listDriftAlarmHours, listDriftAlarms } from './drift-alarm-store.ts';
import { createDriftAlarms } from './drift-alarms-worker.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const NOW = Date.UTC(2026, 5, 1, 12, 30);

forEachEngine('forgetDriftAlarms() deletes alarms of a month ago a batch at a time', async (store) => {
  const alarm = { target: 'ttft', cause: 'error', count: 1 } as const;
  const old = Array.from({ length: 100 }, (_, i) => ({
    ...alarm,
    targetModel: `m-${i}`,
    lastAtMs: NOW - 31 * DAY_MS,
  }));
  const kept = { ...alarm, targetModel: 'kept', lastAtMs: NOW - 29 * DAY_MS };
  await store.writeAll(addAlarmsStatements([...old, kept]));
  const limits: number[] = [];
  const counting: Store = {
    ...store,
    write: async (of, parameters = []) => {
      limits.push(Number(parameters.at(-1)));
      return await store.write(of, parameters);
    },
  };
  assert.equal(await forgetDriftAlarms(counting, NOW), 100);
  assert.ok(limits.length > 1 && limits.every((limit) => limit <= SWEEP_BATCH), limits.join());
  assert.deepEqual(
    (await listDriftAlarms(store, 0)).map(({ targetModel }) => targetModel),
    ['kept'],
  );
});

function openAlarms(store: Store, stillWorld = createStillWorld(NOW)) {
  const world = { ...stillWorld, isClockTrusted: () => false };
  return createDriftAlarms({ store, world, log: createLog('silent'), metrics: new Registry() });
}

const countAlarms = async (store: Store) =>
  (await listDriftAlarms(store, 0)).map(({ targetModel, count }): [string, number] => [targetModel, count]);

forEachEngine('alarms of the last seconds are written at the stop', async (store) => {
  const alarms = openAlarms(store);
  alarms.record('m', { target: 'ttft', cause: 'error' });
  await alarms.stop();
  assert.deepEqual(await countAlarms(store), [['m', 1]]);
});

forEachEngine('alarms of reports that end after the stop are written too', async (store, { openAnother }) => {
  const alarms = openAlarms(store);
  await alarms.stop();
  for (const model of ['m', 'm', 'other']) alarms.record(model, { target: 'ttft', cause: 'error' });
  await store[Symbol.asyncDispose]();
  assert.deepEqual(Object.fromEntries(await countAlarms(await openAnother())), { m: 2, other: 1 });
});

/** A store whose writes fail until `comeBack`, and a promise of the first that did. */
function takeAway(store: Store) {
  const failed = Promise.withResolvers<void>();
  let isAway = true;
  const writeAll: Store['writeAll'] = async (statements) => {
    if (!isAway) return await store.writeAll(statements);
    failed.resolve();
    throw new Error('the database is away');
  };
  const comeBack = () => {
    isAway = false;
  };
  return { store: { ...store, writeAll }, whenFailed: failed.promise, comeBack };
}

forEachEngine('alarms whose write fails are written later, with those that come meanwhile', async (store) => {
  const away = takeAway(store);
  const alarms = openAlarms(away.store);
  for (const model of ['m', 'm', 'other']) alarms.record(model, { target: 'ttft', cause: 'error' });
  alarms.start();
  await away.whenFailed;
  alarms.record('m', { target: 'ttft', cause: 'error' });
  away.comeBack();
  await alarms.stop();
  assert.deepEqual(Object.fromEntries(await countAlarms(store)), { m: 3, other: 1 });
});

forEachEngine('alarms that wait for the database are counted in the hours in which they came', async (store) => {
  const world = createStillWorld(NOW);
  const away = takeAway(store);
  const alarms = openAlarms(away.store, world);
  for (let i = 0; i < 3; i++) alarms.record('m', { target: 'ttft', cause: 'error' });
  alarms.start();
  await away.whenFailed;
  world.moveMs(2 * HOUR_MS);
  alarms.record('m', { target: 'ttft', cause: 'error' });
  away.comeBack();
  await alarms.stop();
  const hours = await listDriftAlarmHours(store, 'm', 0);
  assert.deepEqual(
    hours.map(({ startMs, count }) => [(startMs - NOW) / HOUR_MS, count]),
    [
      [-0.5, 3],
      [1.5, 1],
    ],
  );
});

forEachEngine('in a long outage the alarms of the oldest hours give way to new ones', async (store) => {
  const world = createStillWorld(NOW);
  const away = takeAway(store);
  const alarms = openAlarms(away.store, world);
  const models = Array.from({ length: 100 }, (_, i) => `m-${i}`);
  const HOURS = 12;
  alarms.record('m-0', { target: 'ttft', cause: 'error' });
  alarms.start();
  await away.whenFailed;
  for (let hour = 0; hour < HOURS; hour++) {
    for (const model of models) alarms.record(model, { target: 'ttft', cause: 'error' });
    if (hour < HOURS - 1) world.moveMs(HOUR_MS);
  }
  away.comeBack();
  await alarms.stop();
  const hours = await listDriftAlarmHours(store, 'm-99', 0);
  const kept = hours.map(({ startMs }) => Math.round((startMs - NOW) / HOUR_MS + 0.5));
  assert.deepEqual(kept, [2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
});

forEachEngine('alarms of names that are invented within an hour displace none of that hour', async (store) => {
  const alarms = openAlarms(store);
  for (let i = 0; i < 1200; i++) alarms.record(`m-${i}`, { target: 'ttft', cause: 'error' });
  await alarms.stop();
  assert.equal((await listDriftAlarmHours(store, 'm-0', 0)).length, 1);
  assert.equal((await listDriftAlarmHours(store, 'm-1100', 0)).length, 0);
});
