import assert from 'node:assert/strict';
import { input, openSink } from '../../../test/support/prediction/observation-sink.ts';
import { modelOfMedian } from '../../../test/support/prediction/shared-noise.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { listServerShifts } from '../online/server-shifts.ts';
import type { ObservationEvent } from '../schema/observation-event.ts';

/** The most target models without a training that have a live model of their own. */
const OWN_LIVE_MODELS = 256;
const REQUESTS = 20;

function dispatch(requestId: string, serverIp: string): ObservationEvent {
  return { kind: 'dispatched', requestId, targetModel: 'm', input: { ...input, serverIp }, atMs: 1000 };
}

forEachEngine(
  'requests that were under way at the first training of a model are learned for their own server',
  async (store) => {
    const { sink, predictor } = openSink(store);
    for (let i = 0; i < OWN_LIVE_MODELS; i++) predictor.live(`other-${i}`);
    const slow = Array.from({ length: REQUESTS }, (_, i) => dispatch(`r${i}`, '10.0.0.1'));
    await sink.report(slow);
    predictor.swap('m', modelOfMedian('m@1'));
    // The first server of the new live model has the number that the slow one had in the shared one.
    await sink.report([dispatch('first', '10.0.0.2')]);
    await sink.report(
      slow.map(({ requestId }) => ({ kind: 'finished', requestId, tpotMs: 5000, outputTokens: 400, atMs: 9000 })),
    );
    const shifted = listServerShifts(predictor.live('m').save().servers).map(({ server }) => server);
    assert.deepEqual(shifted, ['10.0.0.1']);
  },
);
