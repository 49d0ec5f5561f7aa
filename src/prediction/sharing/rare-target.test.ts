/** A target that a version leaves to the prior, and that is seldom reported. */
import assert from 'node:assert/strict';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { openSharingProcess, type SharingProcess } from '../../../test/support/prediction/sharing-processes.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { DEFAULT_TRAINING, trainModel } from '../training/train-model.ts';
import { listLiveStates, saveLiveStates } from './live-state-store.ts';

const rows = observePool({ rows: 3000 });
const twoTpots = rows.slice(0, 400).map((row, i) => (i < 2 ? row : { ...row, tpotMs: undefined }));
const trees = { ...DEFAULT_TRAINING.trees, trees: 20 };
const model = trainModel('m@1', tabulate(twoTpots), { ...DEFAULT_TRAINING, trees });
const MANY_TIMES = 16;

function checkTpot(process: SharingProcess, moment: string): void {
  const [, tpotMs] = process.predict(rows[0]!.input);
  assert.ok(tpotMs! < 3, `${tpotMs} ms ${moment}`);
}

for (const others of [600, 2500])
  forEachEngine(
    `a prior that was fitted to 16 times stays after ${others} times of the other target`,
    async (store) => {
      const before = openSharingProcess(store);
      before.predictor.swap('m', model);
      before.observe(rows.slice(0, MANY_TIMES).map((row) => ({ ...row, tpotMs: 2 })));
      before.observe(rows.slice(0, others).map((row) => ({ ...row, tpotMs: undefined })));
      await before.share();
      checkTpot(before, 'in the process that fitted it');
      const after = openSharingProcess(store);
      after.predictor.swap('m', model);
      for (let restarts = 0; restarts < 2; restarts++) {
        await saveLiveStates(store, (restarts === 0 ? before : after).learning.save(['m']), 0);
        await after.learning.restore(await listLiveStates(store), before.learning.sequence);
        checkTpot(after, 'after a restart');
      }
      assert.deepEqual(after.predict(rows[0]!.input), before.predict(rows[0]!.input));
      for (const each of [before, after]) {
        each.predictor.swap('m', { ...model, id: 'm@2' });
        checkTpot(each, 'after a swap');
      }
    },
  );
