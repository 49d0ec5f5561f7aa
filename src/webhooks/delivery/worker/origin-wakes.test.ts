import assert from 'node:assert/strict';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import { takeAllShards } from '../../../../test/support/webhooks/deliveries-store.ts';
import { enqueue, NOW, ORIGIN, OWNER, readDue, result } from '../../../../test/support/webhooks/delivery-queue.ts';
import type { Store } from '../../../database/store.ts';
import { Failure } from '../../../errors.ts';
import { createLog } from '../../../telemetry/log.ts';
import { realWorld } from '../../../world.ts';
import { createHookQueueTable } from '../hook-queues/hook-queue-table.ts';
import { shardOf } from '../queue/delivery-store.ts';
import { hookQueueStatements } from '../queue/hook-queue-change-store.ts';
import type { SendReport } from '../send/send-report.ts';
import { createOriginWakes } from './origin-wakes.ts';
import { createResultWriter } from './result-writer.ts';
import { createWakeSignal } from './wake-signal.ts';

const HOOKS = 100;
const PAUSED_UNTIL_MS = NOW * 2;
const BEFORE_MS = PAUSED_UNTIL_MS - 1;
const REPORT = { status: 200, reason: null, responseBody: Buffer.from('') } as unknown as SendReport;

/** A hook queue that may send, and many that are paused since their origin refuses connections. */
async function openPausedOrigin(store: Store) {
  await takeAllShards(store, OWNER, NOW);
  const deliveryId = await enqueue(store, HOOKS + 1);
  for (let hookId = 1; hookId <= HOOKS; hookId += 1) await enqueue(store, hookId);
  const pause = { untilMs: PAUSED_UNTIL_MS, sinceMs: NOW, reason: 'no_connection' } as const;
  const place = { shard: shardOf(ORIGIN), epoch: 1 };
  const changes = Array.from({ length: HOOKS }, (_, index) => ({
    kind: 'health' as const,
    generation: 0,
    hookId: index + 1,
    ...place,
    fails: 5,
    failingSinceMs: NOW,
    openings: 0,
    pause,
  }));
  await store.writeAll(hookQueueStatements(changes, [], { workerId: OWNER, nowMs: NOW }));
  return deliveryId;
}

/** A writer that has begun to wake the first page of an origin; `goOn` lets its writes through. */
async function beginWaking(store: Store) {
  const begun = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const allScans = Promise.withResolvers<void>();
  let scans = 0;
  const writeAll: Store['writeAll'] = async (steps, options) => {
    if (steps[0]?.statement.name === 'endpoint-wake-of-origin') {
      begun.resolve();
      await goOn.promise;
    }
    return await store.writeAll(steps, options);
  };
  const request = () => {
    scans += 1;
    if (scans === Math.ceil(HOOKS / 64)) allScans.resolve();
  };
  const writer = createResultWriter({
    store: { ...store, writeAll },
    world: { ...realWorld, nowMs: () => NOW },
    log: createLog('warn'),
    workerId: OWNER,
    table: createHookQueueTable(realWorld),
    scan: { request },
    signal: createWakeSignal(),
  });
  writer.add({ changes: [{ kind: 'wake origin', origin: ORIGIN }] });
  await begun.promise;
  return { writer, goOn: goOn.resolve, allScans: allScans.promise };
}

const listDueHooks = async (store: Store, nowMs: number) =>
  (await readDue(store, nowMs)).map(({ hook_id }) => hook_id).filter((hookId) => hookId <= HOOKS);

forEachEngine('results are stored while the many hook queues of an origin are woken', async (store) => {
  const deliveryId = await openPausedOrigin(store);
  const { writer, goOn, allScans } = await beginWaking(store);
  writer.add({ attempt: { result: result(HOOKS + 1, deliveryId), report: REPORT, url: null }, changes: [] });
  await writer.flush();
  assert.deepEqual(await listDueHooks(store, BEFORE_MS), [], 'the wake has not gone on');
  goOn();
  await allScans;
  await writer.stopWaking();
  assert.equal((await listDueHooks(store, BEFORE_MS)).length, HOOKS);
});

forEachEngine('a stop waits for the page under way, and the rest becomes due when its pause ends', async (store) => {
  await openPausedOrigin(store);
  const { writer, goOn } = await beginWaking(store);
  const stopped = writer.stopWaking();
  goOn();
  await stopped;
  assert.equal((await listDueHooks(store, BEFORE_MS)).length, 64);
  assert.equal((await listDueHooks(store, PAUSED_UNTIL_MS)).length, HOOKS);
});

forEachEngine('the log says that ends of pauses could not be stored', async (store) => {
  await openPausedOrigin(store);
  const woken = Promise.withResolvers<void>();
  const lines: string[] = [];
  let hasFailed = false;
  const writeAll: Store['writeAll'] = async (steps, options) => {
    if (hasFailed) return await store.writeAll(steps, options);
    hasFailed = true;
    throw new Failure('unavailable', 'The database is away');
  };
  const wakes = createOriginWakes({
    store: { ...store, writeAll },
    world: { ...realWorld, nowMs: () => NOW },
    log: createLog('warn', { write: (line) => lines.push(readLine(line)) }),
    scan: { request: woken.resolve },
  });
  wakes.add(ORIGIN);
  await woken.promise;
  await wakes.stop();
  assert.deepEqual(lines, [
    'Cannot store outcomes of deliveries; trying again: ends of pauses',
    'Outcomes of deliveries are stored again: ends of pauses',
  ]);
});

/** The message of a line, and what it is about. */
function readLine(line: string): string {
  const { msg, what } = JSON.parse(line) as { readonly msg: string; readonly what?: string };
  return [msg, what].join(': ');
}
