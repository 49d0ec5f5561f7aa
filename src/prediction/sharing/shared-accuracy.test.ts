/** A pool of processes predicts about as well as one process that gets all reports, also while a server slows down. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { openSharingProcess, type SharingProcess } from '../../../test/support/prediction/sharing-processes.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Observation } from '../schema/observation.ts';
import { DEFAULT_TRAINING, trainModel } from '../training/train-model.ts';

const parameters = { ...DEFAULT_TRAINING, trees: { ...DEFAULT_TRAINING.trees, trees: 40 } };
const model = trainModel('m@1', tabulate(observePool({ rows: 800, servers: [1, 1, 1] })), parameters);

/** The second server takes twice as long after 600 requests. */
const ROWS = [
  ...observePool({ rows: 600, servers: [1, 1, 1], seed: 5 }),
  ...observePool({ rows: 1800, servers: [1, 2, 1], seed: 6 }),
];
const SLOWED = '10.0.0.1';
/** How many other requests are sent before a request ends, and between two exchanges: 20 requests a second. */
const UNDER_WAY = 10;
const ROWS_A_SHARE = 20;

interface Score {
  readonly errorPercent: number;
  readonly coveragePercent: number;
}

/** Each request is asked at one process and reported to the next one. */
async function measure(processes: readonly SharingProcess[]): Promise<Record<'slowed' | 'others', Score>> {
  for (const { predictor } of processes) predictor.swap('m', model);
  const answers: { readonly row: Observation; readonly medianMs: number; readonly p90Ms: number }[] = [];
  const underWay: (() => void)[] = [];
  for (const [i, row] of ROWS.entries()) {
    const [medianMs, , p90Ms] = processes[i % processes.length]!.predict(row.input);
    if (i >= 600) answers.push({ row, medianMs: medianMs!, p90Ms: p90Ms! });
    underWay.push(processes[(i + 1) % processes.length]!.dispatch(row));
    if (underWay.length > UNDER_WAY) underWay.shift()!();
    if (i % ROWS_A_SHARE === ROWS_A_SHARE - 1) {
      for (const each of processes) await each.learning.append();
      for (const each of processes) await each.applyNewRows();
    }
  }
  const score = (rows: typeof answers): Score => {
    const error = ({ row, medianMs }: (typeof answers)[number]) => Math.abs(medianMs / row.ttftMs! - 1);
    return {
      errorPercent: (100 * rows.reduce((sum, answer) => sum + error(answer), 0)) / rows.length,
      coveragePercent: (100 * rows.filter(({ row, p90Ms }) => row.ttftMs! <= p90Ms).length) / rows.length,
    };
  };
  const [slowed, others] = [true, false].map((isSlowed) =>
    score(answers.filter(({ row }) => (row.input.serverIp === SLOWED) === isSlowed)),
  );
  return { slowed: slowed!, others: others! };
}

function describe(t: TestContext, title: string, { errorPercent, coveragePercent }: Score): void {
  t.diagnostic(`${title}: error ${errorPercent.toFixed(2)} %, p90 coverage ${coveragePercent.toFixed(1)} %`);
}

forEachEngine(
  'error and coverage of several processes are within a tenth of those of one',
  async (store, { engine, t, openAnother }) => {
    const count = engine === 'sqlite' ? 2 : 3;
    const stores = await Promise.all(Array.from({ length: count }, () => openAnother()));
    const pool = await measure(stores.map((each) => openSharingProcess(each)));
    const alone = openSharingProcess(store);
    alone.learning.append = async () => false;
    alone.applyNewRows = async () => {};
    const one = await measure([alone]);
    for (const servers of ['slowed', 'others'] as const) {
      describe(t, `${count} processes, ${servers}`, pool[servers]);
      describe(t, `one process, ${servers}`, one[servers]);
      assert.ok(pool[servers].errorPercent <= 1.1 * one[servers].errorPercent);
      assert.ok(Math.abs(pool[servers].coveragePercent / one[servers].coveragePercent - 1) <= 0.1);
    }
  },
);
