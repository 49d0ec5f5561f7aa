import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { createPriorModel } from '../model/model.ts';
import { createPredictColumns } from '../schema/columns.ts';
import { LEAST_IDLE_MS } from './names/untrained-models.ts';
import { createPredictor, SHARED_NAME, type SwappablePredictor } from './predictor.ts';

const OWN_LIVE_MODELS = 256;

function openFullPredictor(world = createStillWorld()) {
  const predictor = createPredictor(world);
  const forgotten: string[] = [];
  predictor.onForget((name) => forgotten.push(name));
  for (let i = 0; i < OWN_LIVE_MODELS; i++) predictor.live(`other ${i}`);
  return { world, predictor, forgotten };
}

function hasOwn(predictor: SwappablePredictor, name: string): boolean {
  return predictor.live(name) !== predictor.live(SHARED_NAME);
}

test('a name without a training gets the place of the one that was used longest ago', () => {
  const { world, predictor, forgotten } = openFullPredictor();
  assert.equal(hasOwn(predictor, 'm'), false);
  world.moveMs(LEAST_IDLE_MS - 1);
  assert.equal(hasOwn(predictor, 'm'), false);
  for (let i = 0; i < OWN_LIVE_MODELS; i++) if (i !== 7) predictor.live(`other ${i}`);
  world.moveMs(1);
  assert.equal(hasOwn(predictor, 'm'), true);
  assert.deepEqual(forgotten, ['other 7']);
  assert.equal(predictor.liveNameOf('other 7'), SHARED_NAME);
  assert.equal(hasOwn(predictor, 'another'), false, 'all others were used a moment ago');
});

test('a name that is predicted keeps its live model', () => {
  const { world, predictor, forgotten } = openFullPredictor();
  world.moveMs(LEAST_IDLE_MS);
  predictor.predictBatch('other 0', createPredictColumns(0), ['p50']);
  predictor.live('m');
  assert.deepEqual(forgotten, ['other 1']);
});

test('a name keeps its live model when the clock is set ahead, and gives way when the clock was set back', () => {
  const world = createStillWorld();
  const start = world.nowMs();
  let clockMs = start;
  const { predictor, forgotten } = openFullPredictor({ ...world, nowMs: () => clockMs });
  clockMs = start + 24 * LEAST_IDLE_MS;
  assert.equal(hasOwn(predictor, 'm'), false);
  clockMs = start - 24 * LEAST_IDLE_MS;
  world.moveMs(LEAST_IDLE_MS);
  assert.equal(hasOwn(predictor, 'm'), true);
  assert.deepEqual(forgotten, ['other 0']);
});

test('names with a trained version take no place, until it is removed', () => {
  const { world, predictor, forgotten } = openFullPredictor();
  for (let i = 0; i < 10; i++) predictor.swap(`other ${i}`, createPriorModel());
  for (let i = 0; i < 10; i++) assert.equal(hasOwn(predictor, `new ${i}`), true);
  predictor.swap('other 0', undefined);
  world.moveMs(LEAST_IDLE_MS);
  assert.equal(hasOwn(predictor, 'm'), true);
  assert.deepEqual(forgotten, ['other 10', 'other 11']);
  assert.equal(predictor.list().length, 9);
});

test('a name that is being trained while others take all places is served by what it learned', async () => {
  const { world, predictor } = openFullPredictor();
  const swapped = predictor.swapBetweenCalls('other 0', { ...createPriorModel(), id: 'm@1' });
  world.moveMs(LEAST_IDLE_MS);
  for (let i = 0; i < 3; i++) predictor.live(`new ${i}`);
  await swapped;
  assert.deepEqual(predictor.list(), [{ targetModel: 'other 0', id: 'm@1' }]);
  assert.equal(predictor.live('other 0').model.id, 'm@1');
});
