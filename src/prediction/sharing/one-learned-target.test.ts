import assert from 'node:assert/strict';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { openSharingProcess } from '../../../test/support/prediction/sharing-processes.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { PREDICTION_TARGETS } from '../schema/observation-table.ts';
import { DEFAULT_TRAINING, trainModel } from '../training/train-model.ts';

const SLOWED = [1, 2, 1];
const trees = { ...DEFAULT_TRAINING.trees, trees: 20 };
const model = trainModel('m@1', tabulate(observePool({ rows: 400, servers: [1, 1, 1] })), {
  ...DEFAULT_TRAINING,
  trees,
});
/** At the server that becomes slow. */
const input = { ...observePool({ rows: 1, seed: 9 })[0]!.input, serverIp: '10.0.0.1' };

forEachEngine(
  'processes share the times of a target that was learned, while each fits a prior for the other',
  async (_, { openAnother }) => {
    const processes = await Promise.all([1, 2].map(async () => openSharingProcess(await openAnother())));
    const [reported, other] = processes;
    for (const target of PREDICTION_TARGETS) {
      const alone = { ...model, id: `${target}@1`, pooled: { [target]: model.pooled[target]! } };
      for (const { predictor } of processes) predictor.swap('m', alone);
      const before = other!.predict(input);
      const readLearned = (predicted: readonly number[]) => predicted[target === 'ttft' ? 0 : 1]!;
      for (let round = 0; round < 4; round++) {
        reported!.observe(observePool({ rows: 40, servers: SLOWED, seed: 40 + round }));
        for (const each of [reported!, other!, reported!]) await each.share();
      }
      const after = readLearned(other!.predict(input));
      assert.equal(after, readLearned(reported!.predict(input)), target);
      assert.ok(after > 1.7 * readLearned(before), `${target}: ${after} after ${readLearned(before)}`);
    }
  },
);
