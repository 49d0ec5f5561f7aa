import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { runTrivet } from '../../../test/support/programs/run-trivet.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-import-'));
after(() => rmSync(folder, { recursive: true }));
const env = { TRIVET_DATA_DIR: join(folder, 'data') };
const fixture = (name: string) => new URL(`../formats/fixtures/${name}`, import.meta.url).pathname;

test('models of XGBoost and LightGBM are imported, asked, explained, shown and moved like any other version', async () => {
  const ttft = ['model', 'import', fixture('xgboost-gamma.json'), '--model', 'm', '--target', 'ttft'];
  const first = await runTrivet(ttft, { env });
  assert.match(first.stdout, /m@1 is served now/, first.stderr);
  const features = 'prefix_cache_score=kv_cache_usage,num_request_waiting=3';
  const tpot = ['model', 'import', fixture('lightgbm-regression.txt'), '--model', 'm', '--target', 'tpot'];
  const second = await runTrivet([...tpot, '--features', features, '--unit', 's'], { env });
  assert.match(second.stdout, /m@2 is served now/, second.stderr);

  const candidate = '{"input_token_length": 900, "prefix_cache_score": 0.2, "kv_cache_usage": 0.5}';
  const ask = ['predict', '--model', 'm', '--input', '-'];
  const answer = JSON.parse((await runTrivet([...ask, '--json'], { env, input: candidate })).stdout) as {
    model_version: string;
    predicted_ttft_millis: number;
    predicted_tpot_millis: number;
  };
  assert.equal(answer.model_version, 'm@2');
  assert.ok(answer.predicted_tpot_millis > 20_000, 'seconds are answered in milliseconds');
  const explained = await runTrivet([...ask, '--explain'], { env, input: candidate });
  assert.match(explained.stdout, /TTFT \d+\.\d+ ms = \d+\.\d+ level × /);
  assert.match(explained.stdout, /TPOT \d+\.\d+ ms = \d+\.\d+ level \+ /);

  const shown = await runTrivet(['model', 'show', 'm'], { env });
  assert.match(shown.stdout, /TTFT \(all\) by XGBoost, in ms, from input_token_length, prefix_cache_score/);
  assert.match(
    shown.stdout,
    /TPOT \(all\) by LightGBM, in s, from .*prefix_cache_score=kv_cache_usage, num_request_waiting=3/,
  );
  assert.match((await runTrivet(['model', 'list'], { env })).stdout, /m@2 +yes/);

  const file = join(folder, 'm.model');
  await runTrivet(['model', 'export', 'm', '--output', file], { env });
  assert.match((await runTrivet(['model', 'import', file, '--model', 'n'], { env })).stdout, /n@1 is served now/);
  const moved = await runTrivet(['predict', '--model', 'n', '--input', '-', '--json'], { env, input: candidate });
  const { predicted_ttft_millis } = JSON.parse(moved.stdout) as typeof answer;
  assert.equal(predicted_ttft_millis, answer.predicted_ttft_millis);
});

test('an imported model may have learned the logarithm of a time', async () => {
  const tpot = ['model', 'import', fixture('lightgbm-regression.txt'), '--model', 'logarithm', '--target', 'tpot'];
  const imported = await runTrivet([...tpot, '--transform', 'log', '--unit', 's'], { env });
  assert.match(imported.stdout, /logarithm@1 is served now/, imported.stderr);
  const shown = await runTrivet(['model', 'show', 'logarithm'], { env });
  assert.match(shown.stdout, /TPOT \(all\) by LightGBM, in log of s, from /);
});

const refusals: [title: string, parameters: string[], message: RegExp][] = [
  ['without a name', ['--target', 'ttft'], /say its name with --model/],
  ['without a target', ['--model', 'm'], /say what it predicts with --target ttft or --target tpot/],
  ['with a malformed mapping', ['--model', 'm', '--target', 'ttft', '--features', 'a'], /"a" must be name=field/],
];
for (const [title, parameters, message] of refusals)
  test(`a model of another library is refused ${title}`, async () => {
    const refused = await runTrivet(['model', 'import', fixture('xgboost-gamma.json'), ...parameters], { env });
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, message);
  });
