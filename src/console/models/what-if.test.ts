import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '../../../test/support/basics/wait-until.ts';
import { startConsoleService } from '../../../test/support/pages/console-service.ts';
import { saveTestVersion } from '../../../test/support/prediction/model-versions.ts';
import { FEATURE_NAMES } from '../../prediction/model/features.ts';
import { promoteModel } from '../../prediction/registry/model-store.ts';
import { chooseTexts } from '../texts/texts.ts';
import { namePart } from './model-charts.ts';

test('what would be predicted is answered by address, as Predict answers, with quantiles and parts', async (t) => {
  const service = await startConsoleService({ PREDICTION_LEARNING: 'false' });
  t.after(() => service[Symbol.asyncDispose]());
  for (const login of ['ada', 'eve']) await service.addUser(login, login === 'ada');
  await saveTestVersion(service.store, 'm');
  await promoteModel(service.store, { name: 'm', version: 1, nowMs: Date.now(), reason: 'by a test' });
  const client = await service.openAs('ada');
  const read = async (query: string) => {
    const { body, status } = await client.get(`/models/what-if?name=m${query}`);
    return { body, status, text: body.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ') };
  };
  assert.doesNotMatch((await read('')).text, /Answered by/);
  const query =
    '&input_token_length=2000&num_request_running=8&num_request_waiting=3&kv_cache_usage=0.5&server_ip=10.0.0.2';
  // The serving process follows a promotion a moment later.
  const shown = await waitUntil(async () => {
    const page = await read(query);
    return /Answered by m@1/.test(page.text) && page;
  });

  const response = await fetch(`${service.url}/prediction.v1.PredictionService/Predict`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      targetModel: 'm',
      inputs: [
        { inputTokenLength: 2000, numRequestRunning: 8, numRequestWaiting: 3, kvCacheUsage: 0.5, serverIp: '10.0.0.2' },
      ],
    }),
  });
  const [output] = ((await response.json()) as { outputs: { predictedTtftMillis: number }[] }).outputs;
  const [, answered = ''] = /TTFT: ([\d.,]+) ms \(p50\)/.exec(shown.text) ?? [];
  assert.ok(Math.abs(Number(answered.replace(',', '')) / output!.predictedTtftMillis - 1) < 0.01, `${answered} ms`);

  const parts = /What the TTFT is made of (.*?) = /.exec(
    shown.text.replace(/Table: What the TTFT is made of/g, ''),
  )?.[1];
  assert.match(parts ?? '', /\+ [\d.,]+ ms .*level × \d.* others × \d/);
  const [, since = ''] = /reports since, and statistic × ([\d.]+)/.exec(parts ?? '') ?? [];
  assert.ok(Math.abs(Number(since) - 1) < 0.02, `nothing was reported since, got a factor of ${since}`);
  const quantiles = ['p10', 'p50', 'p90', 'p95', 'p99'].map((name) =>
    Number(new RegExp(`${name} ([\\d.,]+)`).exec(shown.text)?.[1]?.replace(',', '')),
  );
  assert.deepEqual(
    quantiles,
    quantiles.toSorted((a, b) => a - b),
  );
  assert.match(shown.body, /name="num_request_waiting" type="text" value="3"/);
  assert.doesNotMatch(shown.text, /More than 1 was entered/);
  assert.match(
    (await read('&kv_cache_usage=80')).text,
    /More than 1 was entered for: KV cache in use\..* 0\.8 is 80 %/,
  );

  for (const [field, value, message] of [
    ['input_token_length', '-1', '(input_token_length)” must be a number from 0 to 2147483647, got &quot;-1&quot;.'],
    [
      'num_request_waiting',
      '3000000000',
      '(num_request_waiting)” must be a number from 0 to 2147483647, got &quot;3000000000&quot;.',
    ],
    ['kv_cache_usage', 'much', '(kv_cache_usage)” must be a finite number of 0 or more, got &quot;much&quot;.'],
    ['server_ip', 'x'.repeat(257), '(server_ip)” must have at most 256 bytes, got 257.'],
  ] as const) {
    const refused = await read(`&${field}=${value}`);
    assert.equal(refused.status, 422, field);
    assert.ok(refused.body.includes(message), field);
    assert.match(refused.body, new RegExp(`name="${field}"[^>]*aria-invalid="true"`));
  }
  assert.equal((await client.get('/models/what-if?name=missing')).status, 404);
  assert.equal((await (await service.openAs('eve')).get('/models/what-if?name=m')).status, 404);
});

test('each input and each feature of a model has a name in both languages', () => {
  for (const language of ['en', 'zh-CN'] as const) {
    const texts = chooseTexts({ language, timeZone: 'UTC' });
    const unnamed = FEATURE_NAMES.filter((name) => namePart(texts, name) === name);
    assert.deepEqual(unnamed, [], language);
  }
});
