import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startConsoleService } from '../../../test/support/pages/console-service.ts';
import { recordTestAccuracy } from '../../../test/support/prediction/model-accuracy.ts';
import { shareBetween, summarizeRanges } from './error-ranges.ts';

test('predicted and observed times show as cells, and errors by load as quantiles', async (t) => {
  const service = await startConsoleService({ PREDICTION_LEARNING: 'false' });
  t.after(() => service[Symbol.asyncDispose]());
  for (const login of ['ada', 'eve']) await service.addUser(login, login === 'ada');
  await recordTestAccuracy(service.store, { name: 'm', nowMs: Date.now() });
  const client = await service.openAs('ada');
  const read = async (query: string) => {
    const { body, status } = await client.get(`/models/errors?${query}`);
    assert.equal(status, 200, query);
    return { body, text: body.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ') };
  };
  const { body, text } = await read('name=m');
  // 110 ms and 80 ms were predicted where 100 ms were observed, for 144 and 142 reports of two pod types.
  assert.equal(body.match(/<polygon class="cell"/g)?.length, 2);
  assert.match(text, /TTFT: observed against predicted 286 reported times; .* 50\.3 % are within 20 %/);
  assert.match(text, / 50 ms 100 ms 200 ms .* 50 ms 100 ms 200 ms /, 'round values with their unit on both axes');
  assert.match(text, /Requests waiting Range .* 2 to 4 .* 286 /);
  assert.match(
    (await read('name=m&window=12h&target=tpot')).text,
    /TPOT: observed against predicted 143 reported times/,
  );
  const ofPodType = await read('name=m&pod_type=prefill');
  assert.match(ofPodType.text, /TTFT: observed against predicted 143 reported times/);
  assert.match(ofPodType.text, /Error by load .* 2 to 4 .* 143 /);
  assert.match(ofPodType.body, /href="[^"]*pod_type=prefill"[^>]* aria-current="true">prefill/);
  assert.match((await read('name=m&pod_type=aggregate')).text, /observed against predicted 143 reported times/);
  const ofServer = await read('name=m&server=10.0.0.1');
  assert.match(ofServer.text, /TTFT: observed against predicted 286 reported times/);
  assert.doesNotMatch(ofServer.text, /Error by load/);
  assert.match(ofServer.body, /<option value="10\.0\.0\.1" selected>/);
  assert.match((await read('name=m&pod_type=other')).text, /Nothing was reported in this window/);
  const model = await client.get('/models/model?name=m');
  assert.match(model.body, /href="\/models\/errors\?name=m&amp;window=7d&amp;target=ttft"/);
  assert.equal((await client.get('/models/errors?name=missing')).status, 404);
  assert.equal((await (await service.openAs('eve')).get('/models/errors?name=m')).status, 404);
});

test('summarizeRanges() interpolates quantiles between edges and stops at the last ones', () => {
  const errors = {
    edges: [1],
    ratioEdges: [0.5, 1, 2],
    counts: [
      { range: 1, ratio: 1, times: 50 },
      { range: 1, ratio: 2, times: 50 },
      { range: 0, ratio: 3, times: 4 },
    ],
  };
  const [below, above] = summarizeRanges(errors);
  assert.deepEqual(below, { range: 0, rows: 4, p10: 2, median: 2, p90: 2 });
  assert.deepEqual([above?.range, above?.rows, above?.median], [1, 100, 1]);
  assert.ok(Math.abs(above!.p10 - 0.5 * 2 ** 0.2) < 1e-9 && Math.abs(above!.p90 - 2 ** 0.8) < 1e-9);
  assert.equal(Math.round(shareBetween(errors, 0.5, 2)), Math.round((100 * 100) / 104));
});
