import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import { createLog } from '../../telemetry/log.ts';
import type { Attributes, Span } from '../formats/spans/span.ts';
import { createObservationSink } from '../observations/observation-sink.ts';
import { listSamples } from '../observations/sample-store.ts';
import { createPredictor } from '../online/predictor.ts';
import { createSpanQueue } from './learn-from-spans.ts';
import { selectLearnableSpans } from './learnable-spans.ts';
import { countWaitingSpans } from './span-store.ts';

const never = new AbortController().signal;
const HOLD_MS = 10_000;

interface QueueLimits {
  readonly maxUnderWay?: number;
  readonly maxWaiting?: number;
}

function openQueue(store: Store, limits: QueueLimits = {}) {
  const world = createStillWorld();
  const metrics = new Registry();
  const lines: string[] = [];
  const log = createLog('info', { write: (line) => void lines.push((JSON.parse(line) as { msg: string }).msg) });
  const nothing = () => {};
  const sink = createObservationSink({
    store,
    world,
    metrics,
    predictor: createPredictor(),
    onDrift: nothing,
    onObserved: nothing,
  });
  const settings = { kvCapacityTokens: 1000, holdMs: HOLD_MS };
  const queue = createSpanQueue({ store, world, log, metrics, sink, ...settings, ...limits });
  return { queue, world, metrics, lines };
}

interface Request {
  readonly id: string;
  readonly startMs: number;
  readonly ttftMs: number;
  readonly latencyMs: number;
  readonly server?: string;
  readonly more?: readonly (readonly [string, string | number])[];
}

function spanOf({ id, startMs, ttftMs, latencyMs, server = 's1', more = [] }: Request): Span {
  const attributes: Attributes = new Map<string, string | number>([
    ['gen_ai.response.model', 'm'],
    ['gen_ai.usage.prompt_tokens', 100],
    ['gen_ai.usage.completion_tokens', 11],
    ['gen_ai.latency.time_to_first_token', ttftMs / 1000],
    ['gen_ai.latency.e2e', latencyMs / 1000],
    ...more,
  ]);
  return {
    traceId: 't',
    spanId: id,
    startMs,
    isFailed: false,
    attributes,
    resource: new Map([['service.instance.id', server]]),
  };
}

async function listLearned(store: Store) {
  const samples = await listSamples(store, 'm', { limit: 100 });
  return samples
    .map(({ observation: { atMs, input, ttftMs, tpotMs } }) => [
      atMs,
      input.serverIp,
      input.numRequestWaiting,
      input.numRequestRunning,
      ttftMs,
      tpotMs,
    ])
    .sort((a, b) => Number(a[0]) - Number(b[0]));
}

forEachEngine('a request is learned with the load of requests that ended after it', async (store) => {
  const { queue, world } = openQueue(store);
  const at = world.nowMs();
  // Exported as they end: the long request that was there first comes last.
  const exports = [
    [spanOf({ id: 'b', startMs: at + 1000, ttftMs: 100, latencyMs: 600 })],
    [spanOf({ id: 'other', startMs: at + 1100, ttftMs: 100, latencyMs: 600, server: 's2' })],
    [spanOf({ id: 'a', startMs: at, ttftMs: 500, latencyMs: 8000 })],
  ];
  for (const spans of exports) await queue.add(selectLearnableSpans(spans, queue.rules()).spans);
  await queue.learnDue(never);
  assert.deepEqual(await listLearned(store), [], 'none has waited long enough');
  world.moveMs(HOLD_MS);
  await queue.learnDue(never);
  assert.equal((await listLearned(store)).length, 1, 'the others have not waited long enough');
  world.moveMs(1100);
  await queue.learnDue(never);
  // The long request counts as load after it was learned, too.
  assert.deepEqual(await listLearned(store), [
    [at, 's1', 0, 0, 500, 750],
    [at + 1000, 's1', 0, 1, 100, 50],
    [at + 1100, 's2', 0, 0, 100, 50],
  ]);
});

/** Learns six requests that end at once and two long ones, and then one that starts while only these are under way. */
async function learnBusyMinute(store: Store, maxUnderWay: number) {
  const { queue, world, lines } = openQueue(store, { maxUnderWay });
  const at = world.nowMs();
  const ended = Array.from({ length: 6 }, (_, i) => ({ id: `e${i}`, startMs: at + i, ttftMs: 5, latencyMs: 9 }));
  const long = ['l0', 'l1'].map((id) => ({ id, startMs: at + 20, ttftMs: 50, latencyMs: 9000 }));
  const last = { id: 'last', startMs: at + 1000, ttftMs: 100, latencyMs: 600 };
  await queue.add(selectLearnableSpans([...ended, ...long, last].map(spanOf), queue.rules()).spans);
  for (const ms of [HOLD_MS + 100, 1000]) {
    world.moveMs(ms);
    await queue.learnDue(never);
  }
  const [, , , running] = (await listLearned(store)).at(-1)!;
  return { running, lines };
}

forEachEngine('requests under way are load, however many have just ended', async (store) => {
  assert.deepEqual(await learnBusyMinute(store, 2), { running: 2, lines: [] });
});

forEachEngine('a lack of requests under way is logged when it begins and when it ends', async (store) => {
  const { queue, world, lines } = openQueue(store, { maxUnderWay: 1 });
  const at = world.nowMs();
  const long = ['l0', 'l1'].map((id) => ({ id, startMs: at, ttftMs: 50, latencyMs: 9000 }));
  const later = [1000, 2000, 9500, 9600].map((ms) => ({ id: `${ms}`, startMs: at + ms, ttftMs: 10, latencyMs: 60 }));
  await queue.add(selectLearnableSpans([...long, ...later].map(spanOf), queue.rules()).spans);
  const logged: number[] = [];
  world.moveMs(HOLD_MS);
  // The round in between has nothing to learn.
  for (const ms of [0, 1000, 1000, 1000, 6500, 100]) {
    world.moveMs(ms);
    await queue.learnDue(never);
    logged.push(lines.length);
  }
  assert.deepEqual(logged, [0, 1, 1, 1, 2, 2]);
  assert.deepEqual(lines, [
    'Cannot count all requests of traces that were under way; loads are learned too low',
    'All requests of traces that were under way are counted again',
  ]);
});

for (const [title, rounds] of [
  ['one round', [40_000]],
  ['two rounds', [8000, 40_000]],
  ['the first round after a restart', [8000, 'restart', 40_000]],
  ['rounds before and after a request that comes late', [8000, 'late', 9000, 40_000]],
] as [string, (number | 'late' | 'restart')[]][])
  forEachEngine(`a server with few requests keeps its pace beside a busy one, in ${title}`, async (store) => {
    let { queue, world } = openQueue(store);
    const at = world.nowMs();
    const first: Request = { id: 'first', server: 'rare', startMs: at, ttftMs: 100, latencyMs: 600 };
    const others: Request[] = [
      ...Array.from({ length: 2100 }, (_, i) => ({ id: `${i}`, startMs: at + 1000 + 3 * i, ttftMs: 5, latencyMs: 9 })),
      { id: 'long', server: 'rare', startMs: at + 10_000, ttftMs: 100, latencyMs: 35_000 },
      { id: 'last', server: 'rare', startMs: at + 40_000, ttftMs: 100, latencyMs: 600 },
    ];
    const add = (requests: readonly Request[]) =>
      queue.add(selectLearnableSpans(requests.map(spanOf), { ...queue.rules(), nowMs: at }).spans);
    const isLate = rounds.includes('late');
    await add(isLate ? others : [first, ...others]);
    for (const round of rounds)
      if (round === 'restart') ({ queue, world } = openQueue(store));
      else if (round === 'late') await add([first]);
      else {
        world.moveMs(at + HOLD_MS + round - world.nowMs());
        await queue.learnDue(never);
      }
    const last = (await listSamples(store, 'm', { limit: 1 }))[0]!.observation;
    assert.equal(last.atMs, at + 40_000);
    // The prompt, the first token, and one for each 50 ms since.
    assert.equal(last.input.inflightTokens, 100 + 1 + 29_900 / 50);
  });

forEachEngine('a span that is sent twice is learned once, also after it was learned', async (store) => {
  const { queue, world } = openQueue(store);
  const span = spanOf({ id: 'a', startMs: world.nowMs(), ttftMs: 100, latencyMs: 600 });
  const { spans } = selectLearnableSpans([span], queue.rules());
  await queue.add(spans);
  await queue.add(spans);
  world.moveMs(HOLD_MS);
  await queue.learnDue(never);
  await queue.add(spans);
  await queue.learnDue(never);
  assert.equal((await listLearned(store)).length, 1);
  world.moveMs(61_000);
  await queue.learnDue(never);
  assert.deepEqual(await countWaitingSpans(store), new Map(), 'what is over is deleted');
  // After that, the request id of the observation is what refuses it.
  await queue.add(spans);
  await queue.learnDue(never);
  assert.equal((await listLearned(store)).length, 1);
});

/** Sends requests of a server that start now. Returns how many were rejected, and why. */
async function send({ queue, world }: ReturnType<typeof openQueue>, server: string, count: number) {
  const startMs = world.nowMs();
  const requests = Array.from({ length: count }, () => {
    return { id: randomUUID(), startMs, ttftMs: 100, latencyMs: 600, server };
  });
  const { spans, rejected, reason } = selectLearnableSpans(requests.map(spanOf), queue.rules());
  await queue.add(spans);
  return [rejected, reason];
}

const TOO_MANY = [1, 'span 0: the server must send fewer requests: 4 of it wait already'];

forEachEngine(
  'a server that fills its half of the queue leaves the other half to others, until it is learned',
  async (store) => {
    const opened = openQueue(store, { maxWaiting: 8 });
    const { queue, world } = opened;
    assert.deepEqual(await send(opened, 'busy', 4), [0, '']);
    assert.deepEqual(await send(opened, 'busy', 1), TOO_MANY);
    assert.deepEqual(await send(opened, 'other', 2), [0, '']);
    for (const ms of [HOLD_MS + 1000, 60_000]) {
      await queue.learnDue(never);
      world.moveMs(ms);
    }
    await queue.learnDue(never);
    assert.equal((await listLearned(store)).length, 6);
    assert.deepEqual(await send(opened, 'busy', 4), [0, '']);
  },
);

forEachEngine('a server has half of the queue in all processes together', async (store, { openAnother }) => {
  const [first, second] = [store, await openAnother()].map((each) => openQueue(each, { maxWaiting: 8 }));
  assert.deepEqual(await send(first!, 'busy', 4), [0, '']);
  await second!.queue.learnDue(never);
  assert.deepEqual(await send(second!, 'busy', 1), TOO_MANY);
  assert.deepEqual(await send(second!, 'other', 2), [0, '']);
});

forEachEngine('the places of a server are counted past a page of rows', async (store) => {
  const opened = openQueue(store, { maxWaiting: 10_000 });
  await send(opened, 'busy', 2500);
  await send(opened, 'other', 1);
  const restarted = openQueue(store, { maxWaiting: 5000 });
  await restarted.queue.learnDue(never);
  assert.match(String((await send(restarted, 'busy', 1))[1]), /2500 of it wait already/);
  assert.deepEqual(await send(restarted, 'other', 1), [0, '']);
  assert.match(await restarted.metrics.metrics(), /^trivet_prediction_trace_requests_waiting 2502$/m);
});

forEachEngine('requests that could not be stored take no place', async (store) => {
  let isAway = true;
  const opened = openQueue(
    {
      ...store,
      writeAll: async (statements) => {
        if (isAway) throw new Failure('unavailable', 'Cannot reach the database');
        return await store.writeAll(statements);
      },
    },
    { maxWaiting: 8 },
  );
  for (let attempt = 0; attempt < 3; attempt++)
    await assert.rejects(send(opened, 'busy', 4), { message: 'Cannot reach the database' });
  isAway = false;
  assert.deepEqual(await send(opened, 'busy', 4), [0, '']);
});

forEachEngine('requests that are being stored take their places', async (store) => {
  const opened = openQueue(store, { maxWaiting: 8 });
  const storing = send(opened, 'busy', 4);
  assert.deepEqual(await send(opened, 'busy', 1), TOO_MANY);
  assert.deepEqual(await storing, [0, '']);
});

forEachEngine('spans that are over are deleted a batch at a time', async (store) => {
  const limits: number[] = [];
  const watched: Store = {
    ...store,
    write: async (of, parameters = []) => {
      if (of.name === 'waiting-span-delete-over') limits.push(Number(parameters.at(-1)));
      return await store.write(of, parameters);
    },
  };
  const { queue, world } = openQueue(watched);
  const spans = Array.from({ length: 100 }, (_, i) =>
    spanOf({ id: `s${i}`, startMs: world.nowMs() + i, ttftMs: 100, latencyMs: 600 }),
  );
  await queue.add(selectLearnableSpans(spans, queue.rules()).spans);
  world.moveMs(HOLD_MS + 61_000);
  await queue.learnDue(never);
  assert.deepEqual([limits, await countWaitingSpans(store)], [[32, 64, 128], new Map()]);
});

forEachEngine('spans that are added while a round counts what waits are counted', async (store) => {
  const counting = Promise.withResolvers<void>();
  const hasAdded = Promise.withResolvers<void>();
  const watched: Store = {
    ...store,
    read: async (of, parameters = []) => {
      const rows = await store.read(of, parameters);
      if (of.name !== 'waiting-span-count') return rows;
      counting.resolve();
      await hasAdded.promise;
      return rows;
    },
  };
  const { queue, world, metrics } = openQueue(watched);
  const round = queue.learnDue(never);
  await counting.promise;
  await queue.add(selectLearnableSpans([spanOf({ ...request(), startMs: world.nowMs() })], queue.rules()).spans);
  hasAdded.resolve();
  await round;
  assert.match(await metrics.metrics(), /^trivet_prediction_trace_requests_waiting 1$/m);
});

/** A request of `request()` has just ended. */
const RULES = { nowMs: 1600, maxLateMs: HOLD_MS, maxOfServer: 9, countWaiting: () => 0 };

test('a span takes its model from itself, then from its resource, then from the setting', () => {
  const plain = spanOf({ ...request(), more: [['gen_ai.response.model', '']] });
  const ofResource = { ...plain, resource: new Map([...plain.resource, ['gen_ai.request.model', 'resource']]) };
  const ofRequest = { ...ofResource, attributes: new Map([...plain.attributes, ['gen_ai.request.model', 'request']]) };
  const ofResponse = { ...ofRequest, attributes: new Map([...ofRequest.attributes, ['gen_ai.response.model', 'm']]) };
  const { spans, rejected: count } = selectLearnableSpans([plain, ofResource, ofRequest, ofResponse], {
    ...RULES,
    model: 'setting',
  });
  assert.deepEqual([spans.map(({ targetModel }) => targetModel), count], [['setting', 'resource', 'request', 'm'], 0]);
});

const rejected: [title: string, span: Span, reason: RegExp][] = [
  [
    'a missing model',
    spanOf({ ...request(), more: [['gen_ai.response.model', '']] }),
    /the span or its resource must name the model, with one of gen_ai\.response\.model, .*; or PREDICTION_TRACES_MODEL must/,
  ],
  [
    'no server',
    { ...spanOf(request()), resource: new Map() },
    /the resource must name the server, with one of .*service\.instance\.id/,
  ],
  ['no id', { ...spanOf(request()), spanId: '' }, /spanId must be present/],
  ['a TTFT of 0', spanOf({ ...request(), ttftMs: 0 }), /time_to_first_token must be more than 0/],
  ['an end before the first token', spanOf({ ...request(), latencyMs: 50 }), /end_ms must not be before/],
  ['a NUL', spanOf({ ...request(), more: [['gen_ai.response.model', 'a\0']] }), /must not contain the character NUL/],
  ['a time that is not a number', spanOf({ ...request(), ttftMs: Number.NaN }), /must be a finite number/],
  ['a start in another year', spanOf({ ...request(), startMs: 9e15 }), /must be at most/],
  ['a long name', spanOf({ ...request(), server: 'x'.repeat(300) }), /must have at most 256 bytes/],
  [
    'a clock that is ahead',
    spanOf({ ...request(), startMs: 61_001 }),
    /must not end more than 60 s ahead: check the clock/,
  ],
  [
    'a clock that is behind, or a long delay',
    spanOf({ ...request(), startMs: -9001 }),
    /must have ended at most 10 s ago, .* check the clock of the server and how long the collector waits/,
  ],
];

function request(): Request {
  return { id: 'a', startMs: 1000, ttftMs: 100, latencyMs: 600 };
}

for (const [title, span, reason] of rejected)
  forEachEngine(`a span with ${title} is rejected, the others are taken`, async (store) => {
    const { queue } = openQueue(store);
    const accepted = selectLearnableSpans([span, spanOf({ ...request(), id: 'good' })], RULES);
    assert.match(accepted.reason, reason);
    assert.equal(accepted.rejected, 1);
    await queue.add(accepted.spans);
    assert.deepEqual(await countWaitingSpans(store), new Map([['s1', 1]]));
  });
