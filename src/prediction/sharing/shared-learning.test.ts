import assert from 'node:assert/strict';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { openSharingProcess, type SharingProcess } from '../../../test/support/prediction/sharing-processes.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import type { MeansOwner } from '../online/residual-tracker.ts';
import type { Observation } from '../schema/observation.ts';
import { PREDICTION_TARGETS } from '../schema/observation-table.ts';
import { DEFAULT_TRAINING, trainModel } from '../training/train-model.ts';
import { decodeChunk, encodeChunk } from './entries-codec.ts';
import { appendToLog, listLogRows } from './shared-log-store.ts';

const SPEEDS = [1, 1, 1];
const SLOWED = [1, 2, 1];
const trees = { ...DEFAULT_TRAINING.trees, trees: 20 };
const model = trainModel('m@1', tabulate(observePool({ rows: 400, servers: SPEEDS })), { ...DEFAULT_TRAINING, trees });
const later = trainModel('m@2', tabulate(observePool({ rows: 500, servers: SPEEDS, seed: 3 })), {
  ...DEFAULT_TRAINING,
  trees,
});

async function openProcesses(count: number, open: () => Promise<Store>): Promise<SharingProcess[]> {
  const processes = await Promise.all(Array.from({ length: count }, async () => openSharingProcess(await open())));
  for (const { predictor } of processes) predictor.swap('m', model);
  return processes;
}

/** One request at each server, and one at an unknown server. */
const INPUTS = [...Array(4).keys()].map((server) => ({
  ...observePool({ rows: 1, seed: 9 })[0]!.input,
  serverIp: `10.0.0.${server}`,
}));

function predictAll(each: SharingProcess): number[] {
  return INPUTS.flatMap((input) => each.predict(input));
}

async function settle(processes: readonly SharingProcess[]): Promise<void> {
  for (const each of processes) await each.share();
  for (const each of processes) await each.applyNewRows();
}

/** The corrections of upper quantiles, which medians do not show. */
function listCorrections({ predictor }: SharingProcess): number[] {
  return [...predictor.live('m').learning.slots.values()].flatMap((slot) =>
    PREDICTION_TARGETS.flatMap((target) => {
      const { ofSlot, ofLearned } = slot[target].intervals;
      return [...ofSlot.save().corrections!, ...ofLearned.save()];
    }),
  );
}

function assertAlike(processes: readonly SharingProcess[]): void {
  const [first, ...others] = processes.map((each) => [...predictAll(each), ...listCorrections(each)]);
  for (const other of others) assert.deepEqual(other, first);
  for (const { learning } of processes) assert.equal(learning.countPending(), 0);
}

forEachEngine(
  'whichever process receives a report, all predict the same, to the last bit',
  async (_, { openAnother }) => {
    const processes = await openProcesses(3, openAnother);
    const before = predictAll(processes[0]!);
    const rows = withLengths(observePool({ rows: 400, servers: SLOWED, seed: 5 }));
    // Rounds of different sizes, appended in changing orders; what is observed while others append stays on top.
    for (let round = 0; round < 8; round++) {
      const part = rows.slice(round * 50, round * 50 + 50);
      const order = processes.map((_each, i) => processes[(i + round) % 3]!);
      for (const [i, each] of order.entries()) {
        each.observe(part.filter((_row, at) => at % 3 === i || (round % 2 === 0 && i === 0 && at % 3 === 1)));
        await each.share();
        each.observe(part.slice(0, round));
      }
    }
    await settle(processes);
    assertAlike(processes);
    const after = predictAll(processes[0]!);
    assert.ok(after[4]! > 1.7 * before[4]!, `the slowed server: ${after[4]} after ${before[4]}`);
    assert.ok(after[0]! < 1.25 * before[0]!);
  },
);

forEachEngine('what a process observes counts at once, and is not counted twice when it was shared', async (store) => {
  const shared = openSharingProcess(store);
  const alone = openSharingProcess(store);
  for (const { predictor } of [shared, alone]) predictor.swap('m', model);
  for (let part = 0; part < 10; part++) {
    const rows = withLengths(observePool({ rows: 20, servers: SLOWED, seed: part }));
    alone.observe(rows);
    shared.observe(rows);
    const expected = predictAll(alone);
    for (const [i, value] of predictAll(shared).entries())
      assert.ok(Math.abs(value / expected[i]! - 1) < 1e-4, `${value} instead of ${expected[i]}`);
    await shared.share();
    // When a row is applied, quantiles are sorted and servers weighted again; otherwise only after some events.
    for (const { ttft, tpot } of alone.predictor.live('m').learning.slots.values())
      for (const { intervals, weights } of [ttft, tpot]) {
        intervals.ofSlot.replace(intervals.ofSlot.save(), 0);
        for (const _ of weights.reweighServers());
      }
  }
});

/** Answers of two tokens, three, five and unknown length: each count differs for times per token. */
function withLengths(rows: readonly Observation[]): Observation[] {
  return rows.map((row, i) => ({ ...row, outputTokens: [2, 3, 5, undefined][i % 4] }));
}

/** What does not depend on how many others were observed meanwhile: means, losses, and shares that were covered. */
function listSums({ predictor }: SharingProcess): number[] {
  const { tracker, slots } = predictor.live('m').learning;
  const servers = SPEEDS.keys().map((number) => tracker.servers.ensure(Buffer.from(`10.0.0.${number}`)));
  const owners: MeansOwner[] = [
    { kind: 'model', number: 0 },
    { kind: 'podType', number: 0 },
    ...servers.map((number) => ({ kind: 'server', number }) as const),
  ];
  return PREDICTION_TARGETS.flatMap((target) => [
    ...owners.flatMap((owner) => [...tracker.readTarget(owner, target)]),
    ...[...slots.values()].flatMap((slot) => {
      const { weights, intervals } = slot[target];
      const experts = [weights.save(), ...owners.slice(2).map(({ number }) => weights.saveServer(number)!)];
      return [...experts.flatMap(({ losses, count }) => [...losses, count]), ...intervals.ofSlot.save().coverages];
    }),
  ]);
}

forEachEngine(
  'short answers that are reported to two processes count as little as if one process received all reports',
  async (_, { openAnother }) => {
    const [alone, ...both] = await openProcesses(3, openAnother);
    const earlier = withLengths(observePool({ rows: 60, servers: SPEEDS, seed: 1 }));
    for (const each of [alone!, both[0]!]) each.observe(earlier);
    await settle(both);
    const parts = [2, 3].map((seed) => withLengths(observePool({ rows: 25, servers: SPEEDS, seed })));
    // All are dispatched first, so that every forecast is the same in both cases.
    const ends = both.map((each, i) => parts[i]!.map((row) => each.dispatch(row)));
    for (const end of parts.flat().map((row) => alone!.dispatch(row))) end();
    for (const end of ends.flat()) end();
    await settle(both);
    const expected = listSums(alone!);
    for (const sums of both.map(listSums)) {
      assert.equal(sums.length, expected.length);
      for (const [i, sum] of sums.entries())
        assert.ok(
          Math.abs(sum - expected[i]!) < 1e-5 * Math.max(1, Math.abs(expected[i]!)),
          `${i}: ${sum} instead of ${expected[i]}`,
        );
    }
  },
);

forEachEngine(
  'an answer of the database that is lost does not make a row count twice',
  async (store, { openAnother }) => {
    let isLost = false;
    const losing: Store = {
      ...store,
      async writeAll(statements) {
        const rows = await store.writeAll(statements);
        if (isLost) throw new Error('The connection was lost');
        return rows;
      },
    };
    const processes = [openSharingProcess(losing), ...(await openProcesses(1, openAnother))];
    processes[0]!.predictor.swap('m', model);
    processes[0]!.observe(observePool({ rows: 30, servers: SLOWED, seed: 5 }));
    isLost = true;
    await assert.rejects(processes[0]!.learning.append());
    processes[0]!.observe(observePool({ rows: 30, servers: SLOWED, seed: 6 }));
    isLost = false;
    await processes[0]!.share();
    await settle(processes);
    assertAlike(processes);
    assert.equal((await listLogRows(store, 0)).length, 2);
  },
);

forEachEngine(
  'a row that cannot be read, and groups of a later release, hold up neither the rows after them nor a start',
  async (store, { openAnother }) => {
    const processes = await openProcesses(2, openAnother);
    const [first, second] = processes;
    first!.observe(observePool({ rows: 30, servers: SLOWED, seed: 1 }));
    await settle(processes);
    await appendToLog(store, { process: 'broken', number: 1, nowMs: 0, content: Buffer.from('no row') });
    const [row] = await listLogRows(store, 0);
    const { models, sinceMs } = decodeChunk(row!.content);
    const later = models.map((model) => ({
      ...model,
      entries: model.entries.flatMap((entry) => [
        { ...entry, name: { ...entry.name, kind: 'of a later release' as never } },
        entry,
      ]),
    }));
    await appendToLog(store, {
      process: 'later',
      number: 1,
      nowMs: 0,
      content: encodeChunk({ sinceMs, models: later }),
    });
    second!.observe(observePool({ rows: 30, servers: SLOWED, seed: 2 }));
    await settle(processes);
    assertAlike(processes);
    const started = openSharingProcess(store);
    started.predictor.swap('m', model);
    await started.applyNewRows();
    assertAlike([first!, started]);
  },
);

forEachEngine(
  'a process that was cut off goes on with its own, and agrees again afterwards',
  async (_, { openAnother }) => {
    const processes = await openProcesses(3, openAnother);
    const [alone, ...others] = processes;
    for (let part = 0; part < 6; part++) {
      alone!.observe(observePool({ rows: 40, servers: [1, 1, 2], seed: part }));
      for (const [i, each] of others.entries()) {
        each.observe(observePool({ rows: 40, servers: SLOWED, seed: 10 * i + part }));
        await each.share();
      }
    }
    assert.notDeepEqual(predictAll(alone!), predictAll(others[0]!));
    await settle(processes);
    await settle(processes);
    assertAlike(processes);
  },
);

forEachEngine('processes that swap to a version at different moments agree afterwards', async (_, { openAnother }) => {
  const processes = await openProcesses(3, openAnother);
  for (const [i, each] of processes.entries()) {
    each.observe(observePool({ rows: 60, servers: SLOWED, seed: i }));
    await each.share();
  }
  for (const [i, each] of processes.entries()) {
    each.observe(observePool({ rows: 20, servers: SLOWED, seed: 20 + i }));
    each.predictor.swap('m', later);
    each.observe(observePool({ rows: 10, servers: SLOWED, seed: 30 + i }));
    for (const other of processes) await other.share();
  }
  await settle(processes);
  assertAlike(processes);
});

forEachEngine('a process that starts takes up what was saved and what came since', async (store, { openAnother }) => {
  const processes = await openProcesses(2, openAnother);
  const [first, second] = processes;
  first!.observe(observePool({ rows: 80, servers: SLOWED, seed: 1 }));
  await settle(processes);
  // Reports that are in no row yet do not belong to what is saved.
  first!.observe(observePool({ rows: 7, servers: SLOWED, seed: 2 }));
  const states = first!.learning.save(['m']).map(({ saved, ...rest }) => ({
    ...rest,
    saved: { ...saved, servers: [...saved.servers] },
  }));
  second!.observe(observePool({ rows: 30, servers: SLOWED, seed: 3 }));
  await settle(processes);
  const started = openSharingProcess(store);
  started.predictor.swap('m', model);
  await started.learning.restore(states, 0);
  await started.applyNewRows();
  assertAlike([first!, second!, started]);
});

for (const order of ['one after the other', 'together'])
  forEachEngine(`rows of a restored state count once after processes have swapped ${order}`, async (_, context) => {
    const [before, ...restarted] = await openProcesses(4, context.openAnother);
    before!.observe(observePool({ rows: 6, servers: SLOWED, seed: 1 }));
    await before!.share();
    const { sequence } = before!.learning;
    const states = before!.learning.save(['m']).map(({ saved, ...rest }) => ({
      ...rest,
      saved: { ...saved, servers: [...saved.servers] },
    }));
    for (const { learning } of restarted) await learning.restore(states, sequence);
    before!.predictor.swap('m', later);
    if (order === 'together') for (const { predictor } of restarted) predictor.swap('m', later);
    for (const { predictor } of restarted) {
      if (order !== 'together') predictor.swap('m', later);
      for (const each of restarted) {
        await each.applyNewRows();
        await each.share();
      }
    }
    assertAlike(restarted);
    const expected = listMeans(before!);
    for (const means of restarted.map(listMeans))
      for (const [i, value] of means.entries())
        assert.ok(Math.abs(value - expected[i]!) < 1e-4, `${i}: ${value} instead of ${expected[i]}`);
  });

/** The sums and weights of residuals of all servers together. */
function listMeans({ predictor }: SharingProcess): number[] {
  const { tracker } = predictor.live('m').learning;
  return PREDICTION_TARGETS.flatMap((target) => [...tracker.readTarget({ kind: 'model', number: 0 }, target)]);
}
