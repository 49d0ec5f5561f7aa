/**
 * Runs deliveries with many concurrent events: late answers of the store, hooks that are disabled, enabled and changed, requests of
 * people, retries, workers that stop, start and share the shards. A seed fixes the operations and the delays, not the order in which
 * the system runs them. TRIVET_LONG=1 tries many seeds.
 */
import assert from 'node:assert/strict';
import { type Receiver, startReceiver } from '../../../../test/support/network/receiver.ts';
import { type EngineContext, forEachEngine } from '../../../../test/support/store/engines.ts';
import {
  type CommittedTestDelivery,
  commitTestDelivery,
  enqueueTestDelivery,
  insertTestHook,
  readDelivery,
} from '../../../../test/support/webhooks/deliveries-store.ts';
import { createRandom } from '../../../../test/support/webhooks/delivery-simulation.ts';
import { startTestWorker, type TestWorker } from '../../../../test/support/webhooks/delivery-worker.ts';
import { type Statement, type Store, statement } from '../../../database/store.ts';
import { isFailure } from '../../../errors.ts';
import { realWorld, type World } from '../../../world.ts';
import { findHookById } from '../../hooks/hook-store.ts';
import { holdHookQueueStatement, releaseHookQueueStatement } from '../queue/delivery-store.ts';
import { RENEW_EVERY_MS } from './shard-leases.ts';

const SEEDS = process.env.TRIVET_LONG === '1' ? 40 : 2;
const STEPS = 250;
const HOOKS = 12;
const ORIGINS = 4;
const MAX_DELAY_MS = 12;
/** Short, so that shards change their owner often. */
const RENEWED_EVERY_MS = 60;
/** The number of rounds of 50 ms in which all deliveries must end. */
const ROUNDS_TO_END = 1200;

type Random = () => number;

interface Exchange {
  readonly uuid: string;
  readonly status: number;
  readonly beganMs: number;
  endedMs: number;
}

/** Answers late, and refuses every eighth delivery. */
async function startSlowReceiver(random: Random, exchanges: Exchange[]): Promise<Receiver> {
  return await startReceiver(({ headers }, response) => {
    const status = random() < 0.125 ? 500 : 200;
    const exchange: Exchange = {
      uuid: String(headers['x-gitcode-delivery']),
      status,
      beganMs: performance.now(),
      endedMs: Number.POSITIVE_INFINITY,
    };
    exchanges.push(exchange);
    // Any delay, so that attempts overlap in all ways.
    setTimeout(() => {
      exchange.endedMs = performance.now();
      response.statusCode = status;
      response.end('ok');
    }, random() * MAX_DELAY_MS);
  });
}

/** Delays answers: reads are outdated by that time, and others may see a commit before its writer does. */
function delayStore(store: Store, random: Random): Store {
  const late = async <Answer>(work: () => Promise<Answer>): Promise<Answer> => {
    // Both delays are by chance, so that reads and commits overlap in all ways.
    if (random() < 0.3) await realWorld.sleep(random() * MAX_DELAY_MS);
    const answer = await work();
    if (random() < 0.5) await realWorld.sleep(random() * MAX_DELAY_MS);
    return answer;
  };
  return {
    ...store,
    read: (one, parameters) => late(() => store.read(one, parameters)),
    readAll: (statements) => late(() => store.readAll(statements)),
    write: (one, parameters) => late(() => store.write(one, parameters)),
    writeAll: (statements) => late(() => store.writeAll(statements)),
  };
}

/** Leases are renewed so often that the races meet renewals. */
const world: World = {
  ...realWorld,
  sleep: (ms, signal) => realWorld.sleep(ms === RENEW_EVERY_MS ? RENEWED_EVERY_MS : ms, signal),
};

const switchOffSql: Statement = statement('test-switch-off', 'UPDATE hooks SET disabled_at_ms = $2 WHERE id = $1');
const switchOnSql: Statement = statement('test-switch-on', 'UPDATE hooks SET disabled_at_ms = NULL WHERE id = $1');
const changeUrlSql: Statement = statement('test-change-url', 'UPDATE hooks SET url = $2 WHERE id = $1');
// Brings retries forward, except deliveries that are due (and perhaps being sent) or reserved for a manual attempt.
const bringForwardSql: Statement = statement(
  'test-bring-forward',
  `UPDATE deliveries SET due_at_ms = $1 WHERE state = 'pending' AND lane = 1 AND due_at_ms > $1 AND attempts > schedule_from`,
);
const wakeAllSql: Statement = statement(
  'test-wake-all',
  `UPDATE endpoint_queue SET version = version + 1, next_at_ms = $1
   WHERE held_since_ms IS NULL AND canceled_at_ms IS NULL AND next_at_ms > $1`,
);
const unendedSql: Statement<{ id: number }> = statement(
  'test-unended',
  `SELECT id FROM deliveries WHERE state <> 'succeeded' ORDER BY id`,
);
const uuidsSql: Statement<{ id: number; uuid: string; attempts: number }> = statement(
  'test-uuids',
  'SELECT d.id, c.uuid, d.attempts FROM deliveries d JOIN delivery_contents c ON c.delivery_id = d.id ORDER BY d.id',
);

interface Run {
  readonly store: Store;
  readonly random: Random;
  readonly urls: readonly string[];
  readonly workers: TestWorker[];
  readonly startWorker: () => Promise<TestWorker>;
  readonly deliveries: { readonly id: number; readonly hookId: number }[];
  /** By the id of the delivery. */
  readonly redeliveries: Map<number, number>;
}

type Operation = (run: Run) => Promise<void>;

const pick = <Item>(items: readonly Item[], random: Random): Item | undefined =>
  items[Math.floor(random() * items.length)];
const pickHook = ({ random }: Run): number => 1 + Math.floor(random() * HOOKS);
const urlOf = ({ urls }: Run, hookId: number): string => urls[hookId % urls.length]!;

const enqueue: Operation = async (run) => {
  const hookId = pickHook(run);
  for (let count = 1 + Math.floor(run.random() * 4); count > 0; count -= 1)
    run.deliveries.push({
      id: await enqueueTestDelivery(run.store, { hookId, url: urlOf(run, hookId), ownerId: `owner-${hookId % 3}` }),
      hookId,
    });
  // An enqueue of another process wakes no worker here.
  if (run.random() < 0.7) pick(run.workers, run.random)?.wake([hookId]);
};

/** Commits as the intake does; its worker may learn of the commit long after others have seen the delivery. */
const commit: Operation = async (run) => {
  const hookId = pickHook(run);
  const worker = pick(run.workers, run.random);
  const commits: CommittedTestDelivery[] = [];
  for (let count = 1 + Math.floor(run.random() * 2); count > 0; count -= 1) {
    const delivery = { hookId, url: urlOf(run, hookId), ownerId: `owner-${hookId % 3}` };
    const hook = await findHookById(run.store, hookId);
    const made = await commitTestDelivery(run.store, hook!, delivery);
    run.deliveries.push({ id: made.id, hookId });
    commits.push(made);
  }
  // Any delay, as above.
  if (run.random() < 0.5) await realWorld.sleep(run.random() * MAX_DELAY_MS * 4);
  for (const { committed, versions } of commits) worker?.takeCommitted([committed], versions);
};

const switchOff: Operation = async (run) => {
  const hookId = pickHook(run);
  const nowMs = realWorld.nowMs();
  const off = { statement: switchOffSql, parameters: [hookId, nowMs] };
  await run.store.writeAll([holdHookQueueStatement(hookId, nowMs), off]);
};

const switchOn: Operation = async (run) => await enable(run.store, pickHook(run));

async function enable(store: Store, hookId: number): Promise<void> {
  const on = { statement: switchOnSql, parameters: [hookId] };
  await store.writeAll([releaseHookQueueStatement(hookId, realWorld.nowMs()), on]);
}

/** Changes the URL within its origin: after a change of the origin, attempts to both addresses may be under way at once. */
const changeUrl: Operation = async (run) => {
  const hookId = pickHook(run);
  await run.store.write(changeUrlSql, [hookId, `${urlOf(run, hookId)}/${Math.floor(run.random() * 100)}`]);
};

const redeliver: Operation = async (run) => {
  const chosen = pick(run.deliveries, run.random);
  if (chosen === undefined || (await readDelivery(run.store, chosen.id)).state !== 'succeeded') return;
  try {
    const redelivery = await pick(run.workers, run.random)?.manual.redeliver(chosen.hookId, chosen.id);
    if (redelivery !== undefined) run.redeliveries.set(chosen.id, (run.redeliveries.get(chosen.id) ?? 0) + 1);
  } catch (error) {
    // An earlier request is under way.
    if (!isFailure(error) || error.code !== 'conflict') throw error;
  }
};

const bringRetriesForward: Operation = async ({ store }) => {
  const nowMs = realWorld.nowMs();
  await store.writeAll([
    { statement: bringForwardSql, parameters: [nowMs] },
    { statement: wakeAllSql, parameters: [nowMs] },
  ]);
};

const replaceWorker: Operation = async (run) => {
  const index = Math.floor(run.random() * run.workers.length);
  await run.workers[index]!.stop();
  run.workers[index] = await run.startWorker();
};

/** Waits a random time between two operations, while the workers run. */
const rest: Operation = async ({ random }) => await realWorld.sleep(random() * 20);

const OPERATIONS: readonly (readonly [share: number, operation: Operation])[] = [
  [0.2, enqueue],
  [0.25, commit],
  [0.05, switchOff],
  [0.06, switchOn],
  [0.04, changeUrl],
  [0.15, redeliver],
  [0.1, bringRetriesForward],
  [0.01, replaceWorker],
  [0.14, rest],
];

function pickOperation(random: Random): Operation {
  let left = random();
  for (const [share, operation] of OPERATIONS) {
    left -= share;
    if (left < 0) return operation;
  }
  return rest;
}

async function runOperations(store: Store, { engine, openAnother }: EngineContext, random: Random): Promise<void> {
  await using undo = new AsyncDisposableStack();
  const exchanges: Exchange[] = [];
  const urls: string[] = [];
  for (let count = 0; count < ORIGINS; count += 1) urls.push(undo.use(await startSlowReceiver(random, exchanges)).url);
  const startWorker = async () => {
    const own = engine === 'sqlite' ? store : await openAnother();
    return undo.use(startTestWorker(delayStore(own, random), undefined, world));
  };
  const run: Run = { store, random, urls, workers: [], startWorker, deliveries: [], redeliveries: new Map() };
  for (let id = 1; id <= HOOKS; id += 1) await insertTestHook(store, { id, url: urlOf(run, id) });
  for (let count = engine === 'sqlite' ? 1 : 2; count > 0; count -= 1) run.workers.push(await startWorker());
  for (let step = 0; step < STEPS; step += 1) await pickOperation(random)(run);
  for (let id = 1; id <= HOOKS; id += 1) await enable(store, id);
  await waitForEnd(run);
  for (const worker of run.workers) await worker.stop();
  await checkExchanges(run, exchanges);
}

async function waitForEnd({ store }: Run): Promise<void> {
  for (let round = 0; round < ROUNDS_TO_END; round += 1) {
    if ((await store.read(unendedSql)).length === 0) return;
    await bringRetriesForward({ store } as Run);
    // A retry that was brought forward needs a scan by the worker and an answer of its receiver.
    await realWorld.sleep(50);
  }
  assert.deepEqual(await store.read(unendedSql), [], 'these deliveries are stuck');
}

/** Each attempt that was planned was sent once, and logged. */
async function checkExchanges({ store, redeliveries }: Run, exchanges: readonly Exchange[]): Promise<void> {
  const exchangesByUuid = Map.groupBy(exchanges, ({ uuid }) => uuid);
  for (const { id, uuid, attempts } of await store.read(uuidsSql)) {
    const own = exchangesByUuid.get(uuid) ?? [];
    assert.equal(own.length, attempts, `delivery ${id} was sent as often as it was attempted`);
    const accepted = own.filter(({ status }) => status === 200).length;
    assert.equal(accepted, 1 + (redeliveries.get(id) ?? 0), `delivery ${id} was accepted once for each request`);
    for (const [index, { beganMs }] of own.entries())
      assert.ok(index === 0 || own[index - 1]!.endedMs <= beganMs, `delivery ${id} had two attempts at once`);
  }
}

for (let seed = 1; seed <= SEEDS; seed += 1)
  forEachEngine(`every planned attempt is made once, and no delivery is stuck, seed ${seed}`, (store, context) =>
    runOperations(store, context, createRandom(seed)),
  );
