import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { FormClient } from '../../../test/support/network/form-client.ts';
import { type ConsoleService, startConsoleService } from '../../../test/support/pages/console-service.ts';
import { recordTestAccuracy } from '../../../test/support/prediction/model-accuracy.ts';
import { saveTestVersion } from '../../../test/support/prediction/model-versions.ts';
import { promoteModel } from '../../prediction/registry/model-store.ts';
import { listSteps } from './accuracy-choice.ts';
import { tabulateSteps } from './accuracy-steps.ts';

const HOUR_MS = 3_600_000;

/** Starts a console with an administrator, and a model of which version 1 was served, then version 2. */
async function start(t: TestContext): Promise<{ readonly service: ConsoleService; readonly client: FormClient }> {
  const service = await startConsoleService({ PREDICTION_LEARNING: 'false' });
  t.after(() => service[Symbol.asyncDispose]());
  await service.addUser('ada', true);
  const nowMs = Date.now();
  for (const version of [1, 2]) {
    await saveTestVersion(service.store, 'm');
    await promoteModel(service.store, {
      name: 'm',
      version,
      nowMs: nowMs - (version === 1 ? 24 : 6) * HOUR_MS,
      reason: 'by a test',
    });
  }
  await recordTestAccuracy(service.store, { name: 'm', nowMs });
  return { service, client: await service.openAs('ada') };
}

async function readPage(client: FormClient, query: string): Promise<{ readonly body: string; readonly text: string }> {
  const { body, status } = await client.get(`/models/accuracy?${query}`);
  assert.equal(status, 200, query);
  return { body, text: body.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ') };
}

test('charts show error and coverage of a pod type, with versions and alarms marked', async (t) => {
  const { client } = await start(t);
  const { body, text } = await readPage(client, 'name=m');
  // 71 periods of version 2 that are 20 % off, 72 of version 1 that are 10 % off.
  assert.match(
    text,
    /TTFT error \(MAPE\) 15(\.0)? % over 143 reported times, 20 % in the newest step, \d+(\.\d+)? % held out/,
  );
  assert.match(text, /TPOT p90 coverage 50\.3 % over 143 reported times, 0 % in the newest step/);
  assert.equal(body.match(/<svg[^>]* role="img" aria-label="T(TFT|POT) /g)?.length, 4);
  assert.match(body, /<path class="line promotion" d="M[\d.]+ 0V120"><title>Version 2 was served</);
  assert.equal(body.match(/<path class="line alarm"/g)?.length, 2, 'only the charts of TTFT');
  assert.match(text, /2 drift alarms: TTFT p90 coverage .* Version 2 was served/);
  assert.match(text, /Reported times [^A-Z]*UTC 2 20 \d+(\.\d+)? 0 1 /, 'the newest step in the table of values');
});

test('the window, the pod type and the server are chosen by address', async (t) => {
  const { client } = await start(t);
  const { body, text } = await readPage(client, 'name=m&window=30d&pod_type=prefill');
  assert.match(body, /aria-current="true">30 days</);
  assert.match(body, /aria-current="true">prefill</);
  assert.match(body, /href="\/models\/accuracy\?name=m&amp;window=7d&amp;pod_type=prefill"/);
  assert.doesNotMatch(text, /TPOT error/);
  const server = await readPage(client, 'name=m&window=7d&server=10.0.0.1');
  assert.match(server.text, /TTFT error \(MAPE\) 15(\.0)? % over 286 reported times/);
  assert.match(server.body, /<option value="10\.0\.0\.1" selected>/);
  assert.match((await readPage(client, 'name=m&window=1y')).body, /aria-current="true">12 hours</);
  assert.match((await readPage(client, 'name=m&server=9.9.9.9')).text, /Nothing was reported in this window/);
  const model = await client.get('/models/model?name=m');
  assert.match(model.body, /href="\/models\/accuracy\?name=m&amp;server=10\.0\.0\.1"/);
});

test('the charts are there for administrators only, of models that exist, and show names as text', async (t) => {
  const { service, client } = await start(t);
  await service.addUser('eve');
  const eve = await service.openAs('eve');
  assert.equal((await eve.get('/models/accuracy?name=m')).status, 404);
  assert.equal((await client.get('/models/accuracy?name=missing')).status, 404);
  const { body } = await readPage(client, 'name=m&server=%3Cscript%3Ealert(1)');
  assert.match(body, /&lt;script&gt;alert\(1\)/);
  assert.doesNotMatch(body, /<script>alert/);
});

test('tabulateSteps() weighs versions by their rows and takes the held-out error of the version that was served', () => {
  const nowMs = 100 * HOUR_MS;
  const steps = listSteps('7d', false, nowMs);
  assert.deepEqual([steps.moments.length, steps.moments.at(-1)], [168, nowMs]);
  const learned = (podType: string, mape: number) => ({
    podType,
    target: 'ttft',
    rows: 1,
    trees: 1,
    treeShare: 1,
    validation: { rows: 1, mape, mdape: 1 },
    physics: {},
  });
  const version = (number: number, mape: number) => ({
    id: `m@${number}`,
    version: number,
    parentVersion: undefined,
    createdAtMs: 0,
    checksum: '',
    sizeBytes: 1,
    isPromoted: false,
    source: {},
    parameters: {},
    learned: [learned('all', mape), learned('prefill', 10 * mape)],
  });
  const promotions = [
    { version: 2, atMs: nowMs - 2 * HOUR_MS, reason: '', undoneAtMs: nowMs - HOUR_MS },
    { version: 1, atMs: nowMs - 5 * HOUR_MS, reason: '', undoneAtMs: null },
  ];
  const scores = (rows: number, mape: number) => ({ rows, mape, bias: 0, p90Coverage: 100 - mape });
  const points = [
    { startMs: nowMs - 2 * HOUR_MS, version: 1, scores: scores(1, 40) },
    { startMs: nowMs - 2 * HOUR_MS, version: 2, scores: scores(3, 20) },
  ];
  const model = { versions: [version(1, 5), version(2, 7)], promotions };
  const table = tabulateSteps(points, model, { steps, target: 'ttft', podType: 'aggregate' });
  assert.deepEqual(
    table.slice(-6).map(({ versions, rows, mape, p90Coverage, heldOutMape }) => ({
      versions,
      rows,
      mape,
      p90Coverage,
      heldOutMape,
    })),
    [
      { versions: [], rows: 0, mape: null, p90Coverage: null, heldOutMape: 5 },
      { versions: [], rows: 0, mape: null, p90Coverage: null, heldOutMape: 5 },
      { versions: [], rows: 0, mape: null, p90Coverage: null, heldOutMape: 5 },
      { versions: [1, 2], rows: 4, mape: 25, p90Coverage: 75, heldOutMape: 7 },
      { versions: [], rows: 0, mape: null, p90Coverage: null, heldOutMape: 5 },
      { versions: [], rows: 0, mape: null, p90Coverage: null, heldOutMape: 5 },
    ],
  );
  const ofPodType = tabulateSteps(points, model, { steps, target: 'ttft', podType: 'prefill' });
  assert.equal(ofPodType.at(-1)?.heldOutMape, 50);
  assert.equal(table[0]?.heldOutMape, null, 'before the first promotion');
});
