import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { simulatePool } from '../../../test/support/prediction/simulated-pool.ts';
import { readTable } from '../formats/read-table.ts';
import { type ObservationTable, selectRows } from '../schema/observation-table.ts';
import { toRequestLine } from '../simulator/recording.ts';
import { GPUS, type Gpu } from '../simulator/step-time.ts';
import { DEFAULT_TRAINING, trainModel } from '../training/train-model.ts';
import { type Answer, type Answers, measureAccuracy } from './accuracy.ts';
import { answerRows } from './offline-answers.ts';
import { evaluate } from './protocols.ts';

/** Fewer trees than usual: nothing here depends on their number. */
const OPTIONS = {
  parameters: { ...DEFAULT_TRAINING, trees: { ...DEFAULT_TRAINING.trees, trees: 60 } },
  onProgress: () => {},
};

/** A recording of a pool with one server of each of these, named alike in every run. */
function recordRun(run: string, gpus: readonly Gpu[], seed: number): object[] {
  const observations = simulatePool({ gpus, seed, durationMs: 200_000, requestsPerSecondEach: 1.2 });
  return observations.map((observation) => toRequestLine(observation, { run, originMs: 0 }));
}

async function readLog(lines: readonly object[]): Promise<ObservationTable> {
  const { table, refusals } = await readTable(['-'], {
    format: 'requests',
    kvCapacityTokens: 100_000,
    targetModel: 'm',
    stdin: Readable.from([Buffer.from(lines.map((line) => JSON.stringify(line)).join('\n'))]),
  });
  assert.deepEqual(refusals, []);
  return table;
}

const mape = (answers: readonly Answer[]) => measureAccuracy(answers)!.mape;
const [large, medium, small] = GPUS as [Gpu, Gpu, Gpu];
const unlike = await readLog(recordRun('unlike', [large, medium, small], 1));

/** The last three tenths, judged by a model of the others without server addresses and without reports. */
function answerWithoutServers(table: ObservationTable): Answers {
  const rows = Array.from({ length: table.count }, (_, i) => i);
  const nameless = selectRows(table, rows);
  nameless.server.fill(0);
  const cut = Math.floor(0.7 * rows.length);
  const answers: Answers = { ttft: [], tpot: [] };
  answerRows(
    trainModel('m@1', selectRows(nameless, rows.slice(0, cut)), OPTIONS.parameters),
    nameless,
    rows.slice(cut),
    answers,
  );
  return answers;
}

test('in a pool of unlike servers, what each has shown halves the error of TPOT', (t) => {
  const live = evaluate('time', unlike, OPTIONS);
  const without = answerWithoutServers(unlike);
  for (const target of ['ttft', 'tpot'] as const)
    t.diagnostic(
      `${target}: MAPE ${mape(live[target]).toFixed(1)} %, without servers ${mape(without[target]).toFixed(1)} %`,
    );
  assert.equal(live.tpot.length, without.tpot.length);
  assert.ok(mape(live.tpot) < 0.5 * mape(without.tpot), `${mape(live.tpot)} against ${mape(without.tpot)}`);
  assert.ok(mape(live.ttft) < 0.7 * mape(without.ttft), `${mape(live.ttft)} against ${mape(without.ttft)}`);
});

test('in a pool of like servers, levels make nothing worse', async () => {
  const like = await readLog(recordRun('like', [medium, medium, medium], 6));
  const rows = Array.from({ length: like.count }, (_, i) => i);
  const cut = Math.floor(0.7 * rows.length);
  const leveled: Answers = { ttft: [], tpot: [] };
  answerRows(
    trainModel('m@1', selectRows(like, rows.slice(0, cut)), OPTIONS.parameters),
    like,
    rows.slice(cut),
    leveled,
  );
  const without = answerWithoutServers(like);
  for (const target of ['ttft', 'tpot'] as const) {
    const [own, plain] = [mape(leveled[target]), mape(without[target])];
    assert.ok(own < 1.02 * plain, `${target}: ${own} against ${plain}`);
  }
});

test('a run that was held out is judged with what its own servers have shown, not with those of the same name', async () => {
  const runs = [recordRun('a', [large, medium, small], 2), recordRun('b', [small, medium, large], 3)];
  const table = await readLog(runs.flat());
  const judged = evaluate('leave-run-out', table, { ...OPTIONS, holdOut: ['b'] });
  assert.equal(judged.ttft.length, runs[1]!.length);
  assert.ok(judged.ttft.every(({ row }) => table.runs[table.run[row]!] === 'b'));
  const fold = Array.from({ length: table.count }, (_, i) => i);
  const isOut = (row: number) => table.runs[table.run[row]!] === 'b';
  const alone: Answers = { ttft: [], tpot: [] };
  answerRows(
    trainModel(
      'm@1',
      selectRows(
        table,
        fold.filter((row) => !isOut(row)),
      ),
      OPTIONS.parameters,
    ),
    table,
    fold.filter(isOut),
    alone,
  );
  assert.ok(mape(judged.tpot) < 0.7 * mape(alone.tpot), `${mape(judged.tpot)} against ${mape(alone.tpot)}`);
});

test('the last three tenths of each run are judged, also of a short one beside a long one', async () => {
  const long = recordRun('long', [large, small], 4);
  const short = recordRun('short', [medium], 5).slice(0, 50);
  const table = await readLog([...long, ...short]);
  const { ttft } = evaluate('time', table, OPTIONS);
  const count = (run: string) => ttft.filter(({ row }) => table.runs[table.run[row]!] === run).length;
  assert.deepEqual([count('long'), count('short')], [long.length - Math.floor(0.7 * long.length), 15]);
});

test('no answer of any protocol in time depends on what had not happened when the request started', () => {
  const nowMs = findMomentOfWaiting(unlike);
  const changed = selectRows(
    unlike,
    Array.from({ length: unlike.count }, (_, i) => i),
  );
  for (let row = 0; row < changed.count; row++) {
    if (changed.atMs[row]! + changed.ttftMs[row]! > nowMs) changed.ttftMs[row]! *= 3;
    if (changed.endMs[row]! > nowMs) changed.tpotMs[row]! *= 3;
  }
  for (const protocol of ['time', 'prequential'] as const) {
    const [before, after] = [evaluate(protocol, unlike, OPTIONS), evaluate(protocol, changed, OPTIONS)];
    for (const target of ['ttft', 'tpot'] as const) {
      const predictedBy = (answers: Answers) =>
        answers[target]
          .filter(({ row }) => unlike.atMs[row]! <= nowMs)
          .map(({ row, predictedMs, p90Ms }) => [row, predictedMs, p90Ms]);
      assert.ok(predictedBy(before).length > 0);
      assert.deepEqual(predictedBy(after), predictedBy(before));
      assert.notDeepEqual(
        after[target].map(({ predictedMs }) => predictedMs),
        before[target].map(({ predictedMs }) => predictedMs),
      );
    }
  }
});

/** When a request among the judged ones has waited longest for its first token while others started. */
function findMomentOfWaiting({ count, atMs, ttftMs }: ObservationTable): number {
  const judged = Array.from({ length: Math.floor(0.25 * count) }, (_, i) => count - 1 - i);
  const startsDuring = (row: number) =>
    judged.filter((other) => atMs[other]! > atMs[row]! && atMs[other]! < atMs[row]! + ttftMs[row]!);
  const others = judged.map(startsDuring).reduce((most, found) => (found.length > most.length ? found : most));
  assert.ok(others.length >= 3);
  return Math.max(...others.map((row) => atMs[row]!));
}

test('a run that is not there cannot be held out, and the refusal names those that are', async () => {
  const table = await readLog(
    Array.from({ length: 25 }, (_, i) => recordRun(`run-${i}`, [large], 1).slice(0, 2)).flat(),
  );
  assert.throws(
    () => evaluate('leave-run-out', table, { ...OPTIONS, holdOut: ['run-3', 'b'] }),
    /^Failure: Cannot leave these runs out, no row is of them: b; there are run-0, run-1, .*, run-19 and 5 more$/,
  );
});
