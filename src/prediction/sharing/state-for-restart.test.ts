import assert from 'node:assert/strict';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { openSharingProcess, type SharingProcess } from '../../../test/support/prediction/sharing-processes.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Observation } from '../schema/observation.ts';
import { PREDICTION_TARGETS } from '../schema/observation-table.ts';
import { DEFAULT_TRAINING, trainModel } from '../training/train-model.ts';
import { listLiveStates, saveLiveStates } from './live-state-store.ts';

const trees = { ...DEFAULT_TRAINING.trees, trees: 20 };
const model = trainModel('m@1', tabulate(observePool({ rows: 400 })), { ...DEFAULT_TRAINING, trees });
const rows = observePool({ rows: 600, seed: 4 });
const NAMES = ['broken', 'restored'];

/** The row as observed on a server that is slower by this factor. */
function moveTo(row: Observation, serverIp: string, slowness: number): Observation {
  const input = { ...row.input, serverIp };
  return { ...row, input, ttftMs: slowness * row.ttftMs!, tpotMs: slowness * row.tpotMs! };
}

forEachEngine(
  'a swap after a restart knows a slow server whose reports are older than the newest of all',
  async (store) => {
    const before = openSharingProcess(store);
    before.predictor.swap('m', model);
    before.observe(rows.slice(0, 6).map((row) => moveTo(row, 'slow', 4)));
    before.observe(rows.map((row, i) => moveTo(row, `other ${i % 50}`, 1)));
    await before.share();
    await saveLiveStates(store, before.learning.save(['m']), 0);
    const after = openSharingProcess(store);
    after.predictor.swap('m', model);
    // A process that has restarted saves what it was given.
    for (let restarts = 0; restarts < 2; restarts++) {
      await after.learning.restore(await listLiveStates(store), before.learning.sequence);
      await saveLiveStates(store, after.learning.save(['m']), 0);
    }
    for (const { predictor } of [before, after]) predictor.swap('m', { ...model, id: 'm@2' });
    const slow = rows[7]!.input;
    const [ttftMs, tpotMs] = after.predict({ ...slow, serverIp: 'slow' });
    const [normalTtftMs, normalTpotMs] = after.predict({ ...slow, serverIp: 'other 7' });
    assert.ok(ttftMs! > 2 * normalTtftMs!, `TTFT ${ttftMs} beside ${normalTtftMs}`);
    assert.ok(tpotMs! > 2 * normalTpotMs!, `TPOT ${tpotMs} beside ${normalTpotMs}`);
    const kept = (each: typeof after) => each.predictor.live('m').learning.recent.list().length;
    assert.equal(kept(after), kept(before));
  },
);

forEachEngine('a state that is saved right after a swap has no means of the former version', async (store) => {
  const slower = rows.map((row) => moveTo(row, row.input.serverIp, 2));
  const next = trainModel('m@2', tabulate(slower), { ...DEFAULT_TRAINING, trees });
  const before = openSharingProcess(store);
  before.predictor.swap('m', model);
  before.observe(slower.slice(0, 60));
  await before.share();
  before.observe(slower.slice(60, 61));
  before.predictor.swap('m', next);
  await saveLiveStates(store, before.learning.save(['m']), 0);
  const [after, fresh] = [openSharingProcess(store), openSharingProcess(store)];
  for (const { predictor } of [after, fresh]) predictor.swap('m', next);
  await after.learning.restore(await listLiveStates(store), before.learning.sequence);
  for (const [i, ms] of after.predict(rows[7]!.input).slice(0, 2).entries()) {
    const ratio = ms / fresh.predict(rows[7]!.input)[i]!;
    assert.ok(ratio < 1.2, `${ratio} times as long`);
  }
});

forEachEngine(
  'a state that is saved right after a swap has the means that others have shared for the new version',
  async (store, { openAnother }) => {
    const [first, second] = [openSharingProcess(store), openSharingProcess(await openAnother())];
    for (const { predictor } of [first, second]) predictor.swap('m', model);
    const next = { ...model, id: 'm@2' };
    first.predictor.swap('m', next);
    first.observe(rows.slice(0, 40).map((row) => moveTo(row, row.input.serverIp, 2)));
    await first.share();
    await second.applyNewRows();
    second.predictor.swap('m', next);
    await saveLiveStates(store, second.learning.save(['m']), 0);
    const after = openSharingProcess(store);
    after.predictor.swap('m', next);
    await after.learning.restore(await listLiveStates(store), second.learning.sequence);
    assertAlike(after, first, 'm');
  },
);

forEachEngine('a restore that fails half way loses no reports', async (store, { openAnother }) => {
  const [process, other, alone] = [store, await openAnother(), await openAnother()].map((each) =>
    openSharingProcess(each),
  );
  for (const { predictor } of [process!, other!, alone!]) for (const name of NAMES) predictor.swap(name, model);
  const states = NAMES.map((targetModel) => ({
    targetModel,
    sequence: 0,
    saved: other!.predictor.live(targetModel).save(),
  }));
  const observe = (each: typeof alone, from: number) =>
    each!.observe(NAMES.flatMap((targetModel) => rows.slice(from, from + 5).map((row) => ({ ...row, targetModel }))));
  observe(process, 0);
  // The last state of the list is restored first, in this turn.
  const broken = { ...states[0]!, saved: { ...states[0]!.saved, slots: [null as never] } };
  const restoring = process!.learning.restore([broken, ...states.slice(1)], 0);
  observe(process, 5);
  await assert.rejects(restoring, TypeError);
  while (await process!.learning.append()) await process!.applyNewRows();
  await other!.applyNewRows();
  for (const from of [0, 5]) observe(alone, from);
  for (const name of NAMES) assertAlike(other!, alone!, name);
});

function assertAlike(one: SharingProcess, other: SharingProcess, name: string): void {
  const [means, expected] = [one, other].map(({ predictor }) => {
    const { tracker } = predictor.live(name).learning;
    return PREDICTION_TARGETS.flatMap((target) => [...tracker.readTarget({ kind: 'model', number: 0 }, target)]);
  });
  for (const [i, value] of means!.entries())
    assert.ok(Math.abs(value - expected![i]!) < 1e-4, `${name}, ${i}: ${value} instead of ${expected![i]}`);
}
