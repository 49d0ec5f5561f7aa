import assert from 'node:assert/strict';
import { auditChange } from '../../../test/support/basics/audited-changes.ts';
import { countTurns } from '../../../test/support/basics/count-turns.ts';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { createPriorModel } from '../model/model.ts';
import { createPredictor, type SwappablePredictor } from '../online/predictor.ts';
import { readModelHealth } from './model-health.ts';

const MODELS = 50;
const LISTED = 20;

function makeEntry(_: unknown, index: number) {
  const prior = {
    servedVersion: 1,
    servedId: undefined,
    learned: [],
    trainedRows: undefined,
    lastTraining: undefined,
    live: undefined,
  };
  return { ...prior, name: `m${index}`, versionCount: 1, samples: index };
}

function observeSlowServer(predictor: SwappablePredictor, name: string): void {
  const live = predictor.live(name);
  for (const row of observePool({ rows: 30 })) {
    const forecast = live.forecast(tabulate([row]), '', Buffer.from(row.input.serverIp));
    live.observe(forecast, 'ttft', { observedMs: 3 * row.ttftMs! });
  }
}

forEachEngine(
  'the overview looks at the servers of the models alone that it shows, one model in a turn',
  async (store) => {
    const opened = createPredictor();
    const asked: string[] = [];
    const predictor: SwappablePredictor = {
      ...opened,
      live(name) {
        asked.push(name);
        const live = opened.live(name);
        const save = () => assert.fail('the whole state is saved');
        return { ...live, save };
      },
    };
    const entries = Array.from({ length: MODELS }, makeEntry);
    for (const { name } of entries) opened.swap(name, createPriorModel());
    observeSlowServer(opened, `m${MODELS - 1}`);
    const world = createStillWorld();
    let shown: Awaited<ReturnType<typeof readModelHealth>> | undefined;
    const turns = await countTurns(
      readModelHealth({ store, world, predictor, auditChange }, entries).then((health) => {
        shown = health;
      }),
    );
    const newest = Array.from({ length: LISTED }, (_, index) => `m${MODELS - 1 - index}`);
    assert.deepEqual(
      shown?.models.map(({ name }) => name),
      newest,
    );
    assert.equal(shown?.modelCount, MODELS);
    assert.deepEqual(asked, newest);
    assert.deepEqual(
      shown?.models.map(({ shifts }) => shifts.map(({ server, target }) => `${target} of ${server}`)),
      [['ttft of 10.0.0.0'], ...Array.from({ length: LISTED - 1 }, () => [])],
    );
    assert.ok(turns >= LISTED, `${turns} turns`);
  },
);
