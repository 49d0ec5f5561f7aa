/** The dispatches of requests come to one process and their ends to another, as behind a load balancer. */
import assert from 'node:assert/strict';
import { Registry } from 'prom-client';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { input } from '../../../test/support/prediction/observation-sink.ts';
import { modelOfMedian, observeSharedNoise } from '../../../test/support/prediction/shared-noise.ts';
import { openSharingProcess, type SharingProcess } from '../../../test/support/prediction/sharing-processes.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import type { World } from '../../world.ts';
import { createObservationSink, type LearningSink } from './observation-sink.ts';

const UNDER_WAY = 60;
const REQUESTS = 1500;
/** Requests that are not judged: the window of residuals fills. */
const FIRST_JUDGED = 400;
/** 20 requests a second, and an exchange each second. */
const STEP_MS = 50;
const STEPS_A_SHARE = 20;

interface Process {
  readonly shared: SharingProcess;
  readonly sink: LearningSink;
}

function openProcess(store: Store, world: World): Process {
  const shared = openSharingProcess(store, world);
  const sink = createObservationSink({
    store,
    world,
    metrics: new Registry(),
    predictor: shared.predictor,
    beforeObserve: (...observed) => shared.learning.beforeObserve(...observed),
    onDrift: () => {},
    onObserved: () => {},
  });
  shared.predictor.swap('m', modelOfMedian('m@1'));
  return { shared, sink };
}

forEachEngine(
  'the p90 keeps its coverage where one process gets the dispatches and another one the ends',
  async (store, { t, openAnother }) => {
    const world = createStillWorld();
    const [first, second] = [openProcess(store, world), openProcess(await openAnother(), world)];
    const observed = observeSharedNoise({ requests: REQUESTS, underWay: UNDER_WAY, seed: 7 });
    let held = 0;
    for (let i = 0; i < REQUESTS; i++) {
      world.moveMs(STEP_MS);
      const { shared } = i % 2 === 0 ? first : second;
      const [, , , p90Ms] = shared.predict(input);
      if (i >= FIRST_JUDGED && observed[i]! <= p90Ms!) held++;
      const atMs = world.nowMs();
      await first.sink.report([{ kind: 'dispatched', requestId: `r${i}`, targetModel: 'm', input, atMs }]);
      const ended = i - UNDER_WAY;
      if (ended >= 0)
        await second.sink.report([
          { kind: 'finished', requestId: `r${ended}`, tpotMs: observed[ended]!, outputTokens: 400, atMs },
        ]);
      if (i % STEPS_A_SHARE === STEPS_A_SHARE - 1) {
        await second.shared.share();
        await first.shared.share();
      }
    }
    const percent = (100 * held) / (REQUESTS - FIRST_JUDGED);
    t.diagnostic(`${percent.toFixed(1)} % of requests stayed below their p90`);
    assert.ok(percent >= 88, `${percent} % of requests stayed below their p90`);
  },
);
