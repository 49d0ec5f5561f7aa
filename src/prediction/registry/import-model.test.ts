import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { challengeChampion } from '../learning/challenge.ts';
import { createPriorModel, findTimeModel, type LatencyModel } from '../model/model.ts';
import { decodeModel, encodeModel } from '../model/model-codec.ts';
import { createLiveModel } from '../online/live-model.ts';
import { createPredictColumns, METRIC_COLUMNS } from '../schema/columns.ts';
import type { Observation } from '../schema/observation.ts';
import { PREDICTION_TARGETS } from '../schema/observation-table.ts';
import { trainModel } from '../training/train-model.ts';
import { detectModelFile, type ImportOrder, importTrees, placeImported } from './import-model.ts';

const fixture = (name: string) => readFileSync(new URL(`../formats/fixtures/${name}`, import.meta.url), 'utf8');
const order = (file: string, changes: Partial<ImportOrder> = {}): ImportOrder => ({
  kind: file.startsWith('xgboost') ? 'XGBoost' : 'LightGBM',
  text: fixture(file),
  features: new Map(),
  transform: 'identity',
  unit: 'ms',
  ...changes,
});

function importFile(file: string, changes: Partial<ImportOrder> = {}): LatencyModel {
  const placement = { target: 'ttft', podType: undefined, statistic: 'p50' } as const;
  return placeImported(createPriorModel(), importTrees(order(file, changes)), placement);
}

interface Answers {
  readonly rows: readonly [number | null, number | null, number | null][];
  readonly predictions: readonly number[];
}

/** Rows without missing values: an input always has every number. */
function readAnswers(file: string): { readonly row: number[]; readonly said: number }[] {
  const { rows, predictions } = JSON.parse(fixture(file.replace(/\.\w+$/, '-predictions.json'))) as Answers;
  return rows.flatMap((row, i) => (row.includes(null) ? [] : [{ row: row as number[], said: predictions[i]! }]));
}

function predictTtft(model: LatencyModel, inputs: readonly Partial<Record<(typeof METRIC_COLUMNS)[number], number>>[]) {
  const columns = createPredictColumns(inputs.length);
  columns.count = inputs.length;
  columns.podTypes = [''];
  inputs.forEach((input, i) => {
    for (const name of METRIC_COLUMNS) columns[name][i] = input[name] ?? 0;
  });
  const predicted = { ttftMs: new Float64Array(inputs.length), tpotMs: new Float64Array(inputs.length) };
  createLiveModel(model).predict(columns, predicted);
  return predicted.ttftMs;
}

function predictRows(model: LatencyModel, rows: readonly Observation[]) {
  const columns = createPredictColumns(rows.length);
  columns.count = rows.length;
  columns.podTypes = [''];
  const addresses = rows.map(({ input }) => Buffer.from(input.serverIp));
  columns.source = Buffer.concat(addresses);
  let start = 0;
  for (const [i, { input }] of rows.entries()) {
    for (const name of METRIC_COLUMNS) columns[name][i] = input[name];
    columns.serverIpStart[i] = start;
    columns.serverIpLength[i] = addresses[i]!.length;
    start += addresses[i]!.length;
  }
  const predicted = { ttftMs: new Float64Array(rows.length), tpotMs: new Float64Array(rows.length) };
  createLiveModel(model).predict(columns, predicted);
  return predicted;
}

const toInput = ([inputTokenLength, prefixCacheScore, numRequestWaiting]: readonly number[]) => ({
  inputTokenLength: inputTokenLength!,
  prefixCacheScore: prefixCacheScore!,
  numRequestWaiting: numRequestWaiting!,
});

const imports: [file: string, changes: Partial<ImportOrder>, toMs: (said: number) => number][] = [
  ['xgboost-squarederror.json', {}, (said) => said],
  ['xgboost-gamma.json', {}, (said) => said],
  ['xgboost-log-seconds.json', { transform: 'log', unit: 's' }, (said) => 1000 * Math.exp(said)],
  ['lightgbm-regression.txt', { unit: 's' }, (said) => 1000 * said],
  ['lightgbm-log1p.txt', { transform: 'log1p' }, Math.expm1],
  ['lightgbm-poisson.txt', {}, (said) => said],
];
for (const [file, changes, toMs] of imports)
  test(`${file}, imported and read again from the store's format, serves what its library predicts`, () => {
    const served = decodeModel(encodeModel(importFile(file, changes)));
    const answers = readAnswers(file);
    const predicted = predictTtft(
      served,
      answers.map(({ row }) => toInput(row)),
    );
    for (const [i, { said }] of answers.entries())
      assert.ok(Math.abs(predicted[i]! / toMs(said) - 1) < 3e-6, `row ${i}: ${predicted[i]}, not ${toMs(said)}`);
    assert.ok(new Set(predicted).size > 5);
  });

test('features go by the names that they are given, or are a number', () => {
  const renamed = fixture('xgboost-gamma.json').replace('"prefix_cache_score"', '"hit_rate"');
  const features = new Map([
    ['hit_rate', 'kv_cache_usage'],
    ['num_request_waiting', '2'],
  ]);
  const model = importFile('xgboost-gamma.json', { text: renamed, features });
  const [expected] = predictTtft(importFile('xgboost-gamma.json'), [toInput([900, 0.7, 2])]);
  const input = { inputTokenLength: 900, kvCacheUsage: 0.7, numRequestWaiting: 5, prefixCacheScore: 0.1 };
  assert.equal(predictTtft(decodeModel(encodeModel(model)), [input])[0], expected);
});

test("llm-d's names are known, and names are made up for a model without", () => {
  const text = fixture('xgboost-gamma.json');
  const named = importTrees(
    order('xgboost-gamma.json', { text: text.replace('"prefix_cache_score"', '"kv_cache_percentage"') }),
  );
  assert.equal(named.sources[1]?.from, 'kv_cache_usage');
  const nameless = text.replace(/"feature_names":\[[^\]]*\]/, '"feature_names":[]');
  const features = new Map([
    ['f0', 'input_token_length'],
    ['f1', 'effective_tokens'],
    ['f2', 'num_request_running'],
  ]);
  const { sources } = importTrees(order('xgboost-gamma.json', { text: nameless, features }));
  assert.deepEqual(
    sources.map(({ from }) => from),
    ['input_token_length', 'effective_tokens', 'num_request_running'],
  );
});

const refusals: [title: string, changes: Partial<ImportOrder>, message: RegExp][] = [
  [
    'a feature that no input has',
    { text: fixture('xgboost-gamma.json').replace('"prefix_cache_score"', '"gpu_temperature"') },
    /feature "gpu_temperature" is no field of an input; give --features gpu_temperature=FIELD .* one of input_token_length,/,
  ],
  [
    'a field that does not exist',
    { features: new Map([['prefix_cache_score', 'prefix']]) },
    /feature "prefix_cache_score=prefix" is no field/,
  ],
  [
    'a mapping of a feature that the model does not have',
    { features: new Map([['load', 'kv_cache_usage']]) },
    /--features names "load", which the XGBoost model does not ask for; it asks for input_token_length,/,
  ],
  ['the logarithm of what is no logarithm', { transform: 'log' }, /--transform must be identity .* got "log"/],
];
for (const [title, changes, message] of refusals)
  test(`an import refuses ${title}`, () => {
    assert.throws(() => importTrees(order('xgboost-gamma.json', changes)), message);
  });

const files: [start: string, expected: string | RegExp][] = [
  ['TRVMODEL…', 'trivet'],
  ['{"learner":', 'XGBoost'],
  ['\n{ "version": [1, 7, 4], "learner": {', 'XGBoost'],
  ['{"name": "of something else"}', /it must be a model of ours, JSON of XGBoost/],
  ['tree\nversion=v4', 'LightGBM'],
  ['{L\0\0\0\0', /UBJSON, save it as booster.save_model\('model.json'\)/],
  ['\x80\x04\x95', /it must be a model of ours, JSON of XGBoost .* or text of LightGBM/],
];
for (const [start, expected] of files)
  test(`a file that starts with ${JSON.stringify(start)} is ${expected}`, () => {
    const file = Buffer.from(start, 'latin1');
    if (typeof expected === 'string') assert.equal(detectModelFile(file), expected);
    else assert.throws(() => detectModelFile(file), expected);
  });

test('imported trees take the place of one target, and leave the other to what was learned', () => {
  const table = tabulate([
    ...observePool({ rows: 120, podType: 'prefill' }),
    ...observePool({ rows: 120, podType: 'decode', seed: 2 }),
  ]);
  const learned = trainModel('m@1', table);
  const trees = importTrees(order('xgboost-gamma.json'));
  const all = placeImported(learned, trees, { target: 'ttft', podType: undefined, statistic: 'p90' });
  assert.equal(all.statistic, 'p90');
  for (const podType of ['', 'prefill', 'decode']) {
    assert.equal(findTimeModel(all, podType, 'ttft').imported, trees);
    assert.equal(findTimeModel(all, podType, 'tpot'), findTimeModel(learned, podType, 'tpot'));
  }
  const one = placeImported(learned, trees, { target: 'ttft', podType: 'decode', statistic: 'p50' });
  assert.equal(findTimeModel(one, 'decode', 'ttft').imported, trees);
  assert.equal(findTimeModel(one, 'prefill', 'ttft'), findTimeModel(learned, 'prefill', 'ttft'));
});

test('imported trees of one target leave the times of the other as they were, in the stored file too', () => {
  const rows = observePool({ rows: 800, servers: [1, 3, 0.4] });
  const learned = trainModel('m@1', tabulate(rows));
  const trees = importTrees(order('xgboost-gamma.json'));
  for (const target of PREDICTION_TARGETS) {
    const kept = target === 'ttft' ? 'tpotMs' : 'ttftMs';
    const before = predictRows(learned, rows)[kept];
    let served = placeImported(learned, trees, { target, podType: undefined, statistic: 'p50' });
    // Stored, exported and stored again.
    for (let stored = 0; stored < 2; stored++) {
      served = decodeModel(encodeModel(served));
      assert.deepEqual(predictRows(served, rows)[kept], before);
    }
  }
});

test('an imported champion is challenged by what was observed, and beaten when it is worse', () => {
  const table = tabulate(observePool({ rows: 400 }));
  const challenge = challengeChampion(table, importFile('xgboost-gamma.json'));
  assert.ok(challenge.challengerError < challenge.championError);
  assert.equal(challenge.winner?.pooled.ttft?.imported, undefined);
  assert.ok(challenge.winner !== undefined);
});
