import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { createGeneralKernel } from '../gbdt/general/general-kernel.ts';
import { explainGeneralRow } from '../gbdt/general/general-shap.ts';
import { evaluateGeneralForest } from '../gbdt/general/general-tree.ts';
import type { ImportedForest } from './imported-forest.ts';
import { parseLightgbmText } from './lightgbm-text.ts';
import { parseXgboostJson } from './xgboost-json.ts';

/** The fixtures are models of XGBoost and LightGBM with what these libraries themselves say: scripts/make-imported-fixtures.py. */
function readFixture(name: string): string {
  return readFileSync(new URL(`./fixtures/${name}`, import.meta.url), 'utf8');
}

interface Answers {
  /** `null` is a missing value. */
  readonly rows: readonly (readonly (number | null)[])[];
  readonly predictions: readonly number[];
  /** The contribution of each feature, before the link function; the expectation comes last. */
  readonly contributions: readonly (readonly number[])[];
}

function readAnswers(file: string): Answers {
  return JSON.parse(readFixture(file.replace(/\.\w+$/, '-predictions.json'))) as Answers;
}

function predict({ forest }: ImportedForest, rows: Answers['rows']): Float64Array {
  const columns = Array.from({ length: forest.featureCount }, (_, feature) =>
    rows.map((row) => row[feature] ?? Number.NaN),
  );
  const outputs = new Float64Array(rows.length);
  const values = forest.precision === 'single' ? Float32Array.from(columns.flat()) : columns.flat();
  evaluateGeneralForest(forest, { values, stride: rows.length, count: rows.length }, outputs);
  return outputs;
}

test('a model of XGBoost that stopped early answers as its best round does', () => {
  const saved = JSON.parse(readFixture('xgboost-squarederror.json')) as {
    learner: {
      attributes: object;
      gradient_booster: { model: { gbtree_model_param: object; trees: object[] } };
    };
  };
  const { learner } = saved;
  const { model } = learner.gradient_booster;
  const { rows } = readAnswers('xgboost-squarederror.json');
  const answerOf = (trees: object[], attributes: object, parameters: object = {}) => {
    const gbtree_model_param = { ...model.gbtree_model_param, ...parameters };
    const gradient_booster = { ...learner.gradient_booster, model: { ...model, gbtree_model_param, trees } };
    const text = JSON.stringify({ ...saved, learner: { ...learner, attributes, gradient_booster } });
    return predict(parseXgboostJson(text), rows);
  };
  const trees = model.trees;
  const further = [...trees, trees[0]!, trees[1]!];
  assert.deepEqual(answerOf(further, { best_iteration: '4' }), answerOf(trees, {}));
  assert.deepEqual(
    answerOf(further, { best_iteration: '1' }, { num_parallel_tree: '2' }),
    answerOf(trees.slice(0, 4), {}),
  );
  assert.notDeepEqual(answerOf(further, {}), answerOf(trees, {}));
  assert.throws(
    () => answerOf(trees, { best_iteration: 'x' }),
    /best_iteration and num_parallel_tree must be whole numbers/,
  );
});

const parsers = { xgboost: parseXgboostJson, lightgbm: parseLightgbmText };
const models: readonly [library: keyof typeof parsers, file: string][] = [
  ['xgboost', 'xgboost-squarederror.json'],
  ['xgboost', 'xgboost-gamma.json'],
  ['xgboost', 'xgboost-log-seconds.json'],
  ['lightgbm', 'lightgbm-regression.txt'],
  ['lightgbm', 'lightgbm-log1p.txt'],
  ['lightgbm', 'lightgbm-poisson.txt'],
];
for (const [library, file] of models) {
  test(`a model read from ${file} predicts what its library predicts, also on cut points and missing values`, () => {
    const imported = parsers[library](readFixture(file));
    const { rows, predictions } = readAnswers(file);
    assert.deepEqual(imported.featureNames, ['input_token_length', 'prefix_cache_score', 'num_request_waiting']);
    assert.ok(rows.length > 15 && new Set(predictions).size > 5);
    predict(imported, rows).forEach((value, i) => {
      assert.ok(Math.abs(value / predictions[i]! - 1) < 2e-6, `row ${i}: ${value}, the library says ${predictions[i]}`);
    });
  });

  test(`the kernel answers for ${file} as the walk from node to node, to the last bit`, () => {
    const { forest } = parsers[library](readFixture(file));
    const rows = readAnswers(file).rows.filter((row) => !row.includes(null));
    const columns = Array.from({ length: forest.featureCount }, (_, feature) =>
      rows.map((row) => row[feature]!),
    ).flat();
    const values = forest.precision === 'single' ? Float32Array.from(columns) : columns;
    const kernel = createGeneralKernel(forest, rows.length);
    const [walked, answered] = [new Float64Array(rows.length), new Float64Array(rows.length)];
    for (const count of [rows.length, 5, 1]) {
      evaluateGeneralForest(forest, { values, stride: rows.length, count }, walked);
      kernel.evaluate({ values, stride: rows.length, count }, answered);
      assert.deepEqual(answered.subarray(0, count), walked.subarray(0, count));
    }
  });

  test(`each feature contributes to a prediction of ${file} what its library says, and all together the whole`, () => {
    const { forest } = parsers[library](readFixture(file));
    const { rows, contributions } = readAnswers(file);
    const predictions = predict(parsers[library](readFixture(file)), rows);
    for (const [i, row] of rows.entries()) {
      const values = row.map((value) => value ?? Number.NaN);
      const explanation = explainGeneralRow(forest, forest.precision === 'single' ? values.map(Math.fround) : values);
      const ours = [...explanation.contributions, explanation.expectation];
      for (const [f, value] of ours.entries()) assertNear(value, contributions[i]![f]!, `row ${i}, feature ${f}`);
      const sum = ours.reduce((total, value) => total + value, 0);
      assertNear(forest.link === 'exp' ? Math.exp(sum) : sum, predictions[i]!, `row ${i}`);
    }
  });
}

function assertNear(actual: number, expected: number, what: string): void {
  assert.ok(
    Math.abs(actual - expected) <= 1e-5 * Math.max(1, Math.abs(expected)),
    `${what}: ${actual}, not ${expected}`,
  );
}

const xgboost = readFixture('xgboost-squarederror.json');
const lightgbm = readFixture('lightgbm-regression.txt');
const refusals: readonly [title: string, library: keyof typeof parsers, text: string, message: RegExp][] = [
  ['text that is not JSON', 'xgboost', 'x', /the file is not JSON/],
  ['JSON that is not a model', 'xgboost', '{}', /learner: /],
  [
    'a classifier',
    'xgboost',
    xgboost.replace('reg:squarederror', 'binary:logistic'),
    /must be a regression, got "binary:logistic"/,
  ],
  ['another booster', 'xgboost', xgboost.replace('"gbtree"', '"dart"'), /must be gbtree, got "dart"/],
  [
    'a child that is its own parent',
    'xgboost',
    xgboost.replace(/"left_children":\[\d+/, '"left_children":[0'),
    /not well formed/,
  ],
  ['other text', 'lightgbm', 'forest', /not its text format/],
  ['a file cut short', 'lightgbm', lightgbm.slice(0, 2000), /ends too early/],
  [
    'a classifier',
    'lightgbm',
    lightgbm.replace('objective=regression', 'objective=binary sigmoid:1'),
    /must be a regression/,
  ],
  ['categories', 'lightgbm', lightgbm.replace('num_cat=0', 'num_cat=2'), /must be numeric/],
  ['a missing leaf', 'lightgbm', lightgbm.replace(/leaf_value=\S+ /, 'leaf_value='), /6 of 7 leaves/],
];
for (const [title, library, text, message] of refusals) {
  test(`the reader of ${library} models refuses ${title}`, () => {
    assert.throws(() => parsers[library](text), message);
  });
}
