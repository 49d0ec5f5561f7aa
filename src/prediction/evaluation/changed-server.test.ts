import assert from 'node:assert/strict';
import { test } from 'node:test';
import { simulatePool } from '../../../test/support/prediction/simulated-pool.ts';
import { createLiveModel } from '../online/live-model.ts';
import { fillMetrics } from '../schema/input-fields.ts';
import {
  appendObservation,
  createObservationTable,
  type ObservationTable,
  selectRows,
} from '../schema/observation-table.ts';
import { createRooflineTimer, GPUS, type Gpu, scaleTimer } from '../simulator/step-time.ts';
import { DEFAULT_TRAINING, trainModel } from '../training/train-model.ts';
import { type Answer, type Answers, measureAccuracy } from './accuracy.ts';
import { createLiveAnswerer } from './prequential.ts';

const CHANGE_MS = 300_000;
const SLOWED = 'server-1';

/** A pool whose second server takes twice as long from `CHANGE_MS` on. */
function recordPool(gpus: readonly Gpu[], seed: number): ObservationTable {
  const slowed = scaleTimer(createRooflineTimer(gpus[1]!), 2);
  const observations = simulatePool({
    gpus,
    seed,
    durationMs: 1_300_000,
    requestsPerSecondEach: 1.5,
    change: { atMs: CHANGE_MS, apply: (servers) => servers[1]!.setTimer(slowed) },
  });
  const table = createObservationTable();
  const inTime = observations.sort((a, b) => a.outcome.dispatchedMs - b.outcome.dispatchedMs);
  for (const { candidate, outcome, ttftMs, tpotMs } of inTime)
    appendObservation(table, {
      targetModel: 'm',
      input: { podType: '', serverIp: candidate.server, ...fillMetrics(() => 0), ...candidate },
      atMs: outcome.dispatchedMs,
      endMs: outcome.finishedMs,
      ttftMs,
      tpotMs,
    });
  return table;
}

/** Every request after the change, judged in the order of time by a model of what was before. */
function answerAfterChange(table: ObservationTable): Answers {
  const rows = Array.from({ length: table.count }, (_, row) => row);
  const cut = rows.findIndex((row) => table.atMs[row]! > CHANGE_MS);
  const trees = { ...DEFAULT_TRAINING.trees, trees: 60 };
  const live = createLiveModel(
    trainModel('m@1', selectRows(table, rows.slice(0, cut)), { ...DEFAULT_TRAINING, trees }),
  );
  const answers: Answers = { ttft: [], tpot: [] };
  createLiveAnswerer(live, table, { answers })(rows.slice(cut));
  return answers;
}

const [large, medium, small] = GPUS as [Gpu, Gpu, Gpu];
const pools: [title: string, gpus: readonly Gpu[]][] = [
  ['like servers', [medium, medium, medium]],
  ['unlike servers', [large, medium, small]],
];

/** 90 ± 2 %, and beside it three standard deviations of a coverage that is measured on this number of rows. */
function checkCoverage(answers: readonly Answer[], title: string): void {
  const { p90Coverage } = measureAccuracy(answers)!;
  const tolerance = 2 + 3 * 100 * Math.sqrt((0.9 * 0.1) / answers.length);
  assert.ok(Math.abs(p90Coverage - 90) <= tolerance, `${title}: ${p90Coverage} of ${answers.length}`);
}

for (const [title, gpus] of pools)
  test(`among ${title}, one that becomes twice as slow is predicted again within 200 of its requests`, () => {
    const table = recordPool(gpus, 1);
    const answers = answerAfterChange(table);
    for (const target of ['ttft', 'tpot'] as const) {
      const isSlowed = ({ row }: Answer) => table.servers[table.server[row]!] === SLOWED;
      const slowed = answers[target].filter(isSlowed);
      assert.ok(slowed.length > 1200);
      checkCoverage(slowed.slice(200), `${target} of the slowed server`);
      checkCoverage(slowed.slice(200, 600), `${target} of the slowed server, the next 400`);
      checkCoverage(
        answers[target].filter((answer) => !isSlowed(answer)),
        `${target} of the others`,
      );
      const first = measureAccuracy(slowed.slice(0, 5))!;
      const later = measureAccuracy(slowed.slice(200, 600))!;
      assert.ok(first.bias < -15, `${target}: it was noticed before it happened, ${first.bias}`);
      assert.ok(Math.abs(later.bias) < 3, `${target}: a bias of ${later.bias} % is left`);
    }
  });
