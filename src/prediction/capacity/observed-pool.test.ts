import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openSink } from '../../../test/support/prediction/observation-sink.ts';
import { observePool } from '../../../test/support/prediction/observed-pool.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { createPriorModel } from '../model/model.ts';
import { listSamples } from '../observations/sample-store.ts';
import type { Observation } from '../schema/observation.ts';
import type { ObservationEvent } from '../schema/observation-event.ts';
import { createObservedPool, joinSamples } from './observed-pool.ts';

const requests = observePool({ rows: 120 }).map((row, i) => ({ ...row, outputTokens: 50 + i }));

function toEvents({ input, atMs, ttftMs, tpotMs, outputTokens }: Observation, i: number): ObservationEvent[] {
  const request = { requestId: `r${i}`, atMs: atMs! };
  return [
    { ...request, kind: 'dispatched', targetModel: 'm', input },
    { ...request, kind: 'first_token', ttftMs: ttftMs! },
    { ...request, kind: 'finished', tpotMs, outputTokens: outputTokens! },
  ];
}

function openPool(samples: readonly Observation[]) {
  return createObservedPool({
    model: createPriorModel(),
    samples,
    servers: undefined,
    podType: '',
    outputTokens: undefined,
  });
}

/** What a pool knows of its only server. */
function describePool(samples: readonly Observation[]) {
  const { lengths, servers } = openPool(samples);
  const { requests: own, tpot, load } = servers[0]!;
  const loads = [5, 15, 30].map((underWay) => [tpot.at(underWay, 0.1), load.at(underWay)]);
  return { lengths, requests: own, loads, lowest: load.lowest };
}

forEachEngine('a streamed request, of which the store has two samples, is one request of the pool', async (store) => {
  const { sink } = openSink(store);
  await sink.report(requests.flatMap(toEvents));
  const samples = (await listSamples(store, 'm', { limit: 1000 })).map(({ observation }) => observation);
  assert.equal(samples.length, 240);
  assert.deepEqual(describePool(samples), describePool(requests));
});

forEachEngine('answers of one token count in the mean length of answers', async (store) => {
  const { sink } = openSink(store);
  const mixed = requests.map((row, i) =>
    i % 2 === 0 ? { ...row, tpotMs: undefined, outputTokens: 1 } : { ...row, outputTokens: 200 },
  );
  await sink.report(mixed.flatMap(toEvents));
  const samples = (await listSamples(store, 'm', { limit: 1000 })).map(({ observation }) => observation);
  assert.deepEqual(describePool(samples), describePool(mixed));
  assert.equal(openPool(samples).lengths.outputTokens, 100.5);
});

const [whole] = requests as [Observation];
const ofTtft = { ...whole, tpotMs: undefined, outputTokens: undefined };
const ofTpot = { ...whole, ttftMs: undefined };

test('joinSamples() joins a TTFT and a TPOT in any order, each once', () => {
  for (const [one, other] of [
    [ofTtft, ofTpot],
    [ofTpot, ofTtft],
  ] as const)
    assert.deepEqual(joinSamples([one, other, one]), [whole, one]);
});

test('joinSamples() joins the two samples of an answer of one token, which has no TPOT', () => {
  const one = (atMs: number) => ({ ...ofTtft, atMs });
  const halves = Array.from({ length: 60 }, (_, i) => [one(i), { ...one(i), ttftMs: undefined, outputTokens: 1 }]);
  assert.deepEqual(
    joinSamples(halves.flat()),
    halves.map((_, i) => ({ ...one(i), outputTokens: 1 })),
  );
});

const unlike: [title: string, one: Observation, other: Observation][] = [
  ['of different moments', ofTtft, { ...ofTpot, atMs: whole.atMs! + 1 }],
  ['of different servers', ofTtft, { ...ofTpot, input: { ...whole.input, serverIp: 'other' } }],
  ['of different pod types', ofTtft, { ...ofTpot, input: { ...whole.input, podType: 'decode' } }],
  ['of different inputs', ofTtft, { ...ofTpot, input: { ...whole.input, inputTokenLength: 1 } }],
  ['of different runs', ofTtft, { ...ofTpot, run: 'other' }],
  ['without times of day', { ...ofTtft, atMs: undefined }, { ...ofTpot, atMs: undefined }],
  ['of the same target', ofTpot, ofTpot],
  ['that have both times', whole, whole],
];
for (const [title, one, other] of unlike)
  test(`joinSamples() leaves two samples ${title}`, () => {
    assert.deepEqual(joinSamples([one, other]), [one, other]);
  });
