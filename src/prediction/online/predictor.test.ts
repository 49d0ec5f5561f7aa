import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { measureAccuracy } from '../evaluation/accuracy.ts';
import { evaluate } from '../evaluation/protocols.ts';
import { createPriorModel, type LatencyModel } from '../model/model.ts';
import { decodeModel, encodeModel } from '../model/model-codec.ts';
import { createPredictColumns, METRIC_COLUMNS, type PredictColumns } from '../schema/columns.ts';
import type { Observation } from '../schema/observation.ts';
import { DEFAULT_TRAINING, trainModel } from '../training/train-model.ts';
import { createLiveModel } from './live-model.ts';
import { createPredictor } from './predictor.ts';

type Candidate = Partial<Observation['input']>;

function fillColumns(candidates: readonly Candidate[]): PredictColumns {
  const columns = createPredictColumns(Math.max(1, candidates.length));
  columns.count = candidates.length;
  for (const [i, candidate] of candidates.entries()) {
    for (const name of METRIC_COLUMNS) columns[name][i] = candidate[name] ?? 0;
    const podType = candidate.podType ?? '';
    if (!columns.podTypes.includes(podType)) columns.podTypes.push(podType);
    columns.podType[i] = columns.podTypes.indexOf(podType);
  }
  return columns;
}

function answer(model: LatencyModel, candidates: readonly Candidate[]): { ttft: number[]; tpot: number[] } {
  const predicted = { ttftMs: new Float64Array(candidates.length), tpotMs: new Float64Array(candidates.length) };
  createLiveModel(model).predict(fillColumns(candidates), predicted);
  return { ttft: [...predicted.ttftMs], tpot: [...predicted.tpotMs] };
}

const observations = observePool({ rows: 1500 });
const model = trainModel('m@1', tabulate(observations));

test('a model predicts held-out rows far better than the prior', () => {
  const fresh = observePool({ rows: 300, seed: 9 });
  const meanError = (served: LatencyModel) => {
    const { ttft } = answer(
      served,
      fresh.map((row) => row.input),
    );
    return ttft.reduce((sum, value, i) => sum + Math.abs(value / fresh[i]!.ttftMs! - 1), 0) / fresh.length;
  };
  assert.ok(meanError(model) < 0.1, `error ${meanError(model)}`);
  assert.ok(meanError(createPriorModel()) > 3 * meanError(model));
});

test('any finite load is answered with finite times above 0', () => {
  const metric = fc.oneof(
    fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(0, 1, 5e-324, 2 ** 31, Number.MAX_VALUE),
  );
  const candidate = fc.record({
    ...(Object.fromEntries(METRIC_COLUMNS.map((name) => [name, metric])) as Record<
      (typeof METRIC_COLUMNS)[number],
      typeof metric
    >),
    podType: fc.constantFrom('', 'prefill', 'decode', 'aggregate', 'of my own'),
  });
  fc.assert(
    fc.property(fc.array(candidate, { maxLength: 9 }), (candidates) => {
      for (const served of [createPriorModel(), model])
        for (const value of Object.values(answer(served, candidates)).flat())
          assert.ok(value > 0 && value < Number.POSITIVE_INFINITY);
    }),
  );
});

test('the prior answers longer for more tokens, more requests and less prefix', () => {
  const base = { inputTokenLength: 1000, numRequestRunning: 4, prefixCacheScore: 0.5 };
  const [plain, longer, busier, reused] = answer(createPriorModel(), [
    base,
    { ...base, inputTokenLength: 2000 },
    { ...base, numRequestWaiting: 5 },
    { ...base, prefixCacheScore: 1 },
  ]).ttft;
  assert.ok(longer! > plain! && busier! > plain! && reused! < plain!);
});

test('a row gets the same answer alone and among others, in any order and for any pod type', () => {
  const pods = ['', 'prefill', 'decode'];
  const rows = pods.flatMap((podType, i) => observePool({ rows: 200, seed: 20 + i, podType, servers: [1 + i] }));
  const mixed = trainModel('m@2', tabulate(rows));
  const candidates = Array.from({ length: 50 }, (_, i) => ({ ...observations[i]!.input, podType: pods[i % 3]! }));
  const together = answer(mixed, candidates);
  for (const [i, candidate] of candidates.entries()) {
    assert.equal(answer(mixed, [candidate]).ttft[0], together.ttft[i]);
    assert.equal(answer(mixed, [candidate]).tpot[0], together.tpot[i]);
  }
  const [aggregate, decode] = answer(mixed, [
    { ...candidates[0], podType: 'aggregate' },
    { ...candidates[0], podType: 'decode' },
  ]).tpot;
  assert.equal(aggregate, together.tpot[0]);
  assert.ok(decode! > 2 * aggregate!, 'the decode pods of this pool are three times slower');
});

test('an unobserved pod type is answered by the pooled model', () => {
  const candidate = observations[0]!.input;
  assert.deepEqual(answer(model, [{ ...candidate, podType: 'new' }]), answer(model, [candidate]));
});

test('an unobserved target is answered by the prior', () => {
  const onlyTtft = trainModel('m@3', tabulate(observations.map((row) => ({ ...row, tpotMs: undefined }))));
  const candidate = [observations[0]!.input];
  assert.deepEqual(answer(onlyTtft, candidate).tpot, answer(createPriorModel(), candidate).tpot);
});

test('few rows move the answers from the prior towards them, and never break', () => {
  const few = trainModel('m@4', tabulate(observations.slice(0, 25)));
  const { ttft } = answer(
    few,
    observations.slice(0, 200).map((row) => row.input),
  );
  assert.ok(ttft.every((value) => value > 0 && value < 1e6));
  assert.equal(few.pooled.ttft?.forest, undefined);
});

test('the same rows give the same model', () => {
  const again = trainModel('m@1', tabulate(observations));
  assert.deepEqual(Buffer.from(encodeModel(again)), Buffer.from(encodeModel(model)));
});

test('a model read back answers to the last bit as before', () => {
  const back = decodeModel(encodeModel(model));
  const candidates = observations.slice(0, 100).map((row) => row.input);
  assert.deepEqual(answer(back, candidates), answer(model, candidates));
  assert.equal(back.id, 'm@1');
});

test('where physics explains the load, hardly a tree is grown, and the model is written and read', () => {
  const scattered = observePool({ rows: 500, seed: 8 }).map((row, i) => ({
    ...row,
    tpotMs: 20 * 1.9 ** ((i * 7919) % 13),
  }));
  const noise = trainModel('m@7', tabulate(scattered));
  assert.ok(noise.pooled.tpot!.forest!.treeCount < 15, `${noise.pooled.tpot!.forest!.treeCount}`);
  assert.ok(model.pooled.tpot!.forest!.treeCount >= 20, `${model.pooled.tpot!.forest!.treeCount}`);
  const candidates = observations.slice(0, 20).map((row) => row.input);
  assert.deepEqual(answer(decodeModel(encodeModel(noise)), candidates), answer(noise, candidates));
});

test('trees are used also where five servers take turns', () => {
  const turns = observePool({ rows: 600, seed: 5 }).map((row, i) => {
    const slowness = [1, 2, 16, 4, 8][i % 5]!;
    const input = { ...row.input, serverIp: `10.0.0.${i % 5}` };
    return { ...row, input, ttftMs: row.ttftMs! * slowness, tpotMs: row.tpotMs! * slowness };
  });
  const { ttft, tpot } = trainModel('m@6', tabulate(turns)).pooled;
  assert.ok(ttft!.forestShare >= 0.75 && tpot!.forestShare >= 0.75, `${ttft!.forestShare}, ${tpot!.forestShare}`);
  assert.ok(ttft!.validation!.mape < 15);
});

test('a damaged, cut or foreign file is refused', () => {
  const file = encodeModel(model);
  const changed = Uint8Array.from(file);
  changed[changed.length >> 1]! ^= 1;
  assert.throws(() => decodeModel(changed), /damaged/);
  assert.throws(() => decodeModel(file.subarray(0, file.length - 1)), /damaged/);
  assert.throws(() => decodeModel(Buffer.from('{"hello": 1}')), /not a model file/);
  const later = Uint8Array.from(file);
  later[8] = 9;
  assert.throws(() => decodeModel(later), /format is 9/);
});

test('a p90 model answers above nine of ten new observations', () => {
  const careful = trainModel('m@5', tabulate(observations), { ...DEFAULT_TRAINING, statistic: 'p90' });
  const fresh = observePool({ rows: 1000, seed: 77 });
  const { ttft } = answer(
    careful,
    fresh.map((row) => row.input),
  );
  const below = ttft.filter((value, i) => fresh[i]!.ttftMs! <= value).length / fresh.length;
  assert.ok(below > 0.86 && below < 0.94, `coverage ${below}`);
});

test('a swap is seen by the next call, and taking a model away goes back to the prior', () => {
  const predictor = createPredictor();
  const columns = fillColumns([observations[0]!.input]);
  const predicted = { ttftMs: new Float64Array(1), tpotMs: new Float64Array(1) };
  assert.equal(predictor.predict('m', columns, predicted), 'prior@1');
  predictor.swap('m', model);
  assert.equal(predictor.predict('m', columns, predicted), 'm@1');
  assert.equal(predictor.predict('other', columns, predicted), 'prior@1');
  predictor.swap('m', undefined);
  assert.equal(predictor.predict('m', columns, predicted), 'prior@1');
});

test('every protocol tests only rows that the model was not trained on, and finds the pool predictable', () => {
  const table = tabulate(observePool({ rows: 600, seed: 3, servers: [1, 1.1, 0.9] }));
  const options = { parameters: DEFAULT_TRAINING, onProgress: () => {} };
  const rowsOf = { random: 300, time: 180, prequential: 600, 'leave-load-out': 600, 'leave-server-out': 600 } as const;
  for (const protocol of ['random', 'time', 'prequential', 'leave-load-out', 'leave-server-out'] as const) {
    const accuracy = measureAccuracy(evaluate(protocol, table, options).ttft);
    assert.equal(accuracy?.rows, rowsOf[protocol], protocol);
    if (protocol === 'random' || protocol === 'time') assert.ok(accuracy.mape < 15, `${protocol} ${accuracy.mape}`);
  }
});

test('leaving servers out needs two of them', () => {
  const table = tabulate(observePool({ rows: 100 }));
  assert.throws(
    () => evaluate('leave-server-out', table, { parameters: DEFAULT_TRAINING, onProgress: () => {} }),
    /at least 2/,
  );
});
