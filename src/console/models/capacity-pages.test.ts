import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { waitUntil } from '../../../test/support/basics/wait-until.ts';
import { findReasonToSkipPages } from '../../../test/support/pages/browser.ts';
import { savePictures, signIn, useBrowser } from '../../../test/support/pages/browser-pages.ts';
import { startConsoleService } from '../../../test/support/pages/console-service.ts';
import { findPageFlaws } from '../../../test/support/pages/page-flaws.ts';
import { reportTestRows, saveTestVersion } from '../../../test/support/prediction/model-versions.ts';
import { promoteModel } from '../../prediction/registry/model-store.ts';

/** Names that the pages do not translate. */
const CONTENT = ['ada', 'm'];
const PATH = '/models/capacity?name=m';
const QUESTION = `${PATH}&ttft_ms=9000&tpot_ms=60&quantile=0.9&prompt_tokens=&output_tokens=150&servers=&pod_type=`;

/** Without a served version, and without samples. */
async function start() {
  const service = await startConsoleService({ PREDICTION_LEARNING: 'false' });
  for (const login of ['ada', 'eve']) await service.addUser(login, login === 'ada');
  await saveTestVersion(service.store, 'm');
  return {
    service,
    observe: async () => {
      await promoteModel(service.store, { name: 'm', version: 1, nowMs: Date.now(), reason: 'by a test' });
      await reportTestRows(service.url, 'm', 300);
    },
  };
}

function readText(body: string): string {
  return body.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ');
}

test('a form in the address is answered with a sentence, pictures, their values, and the headroom of each server', async (t) => {
  const { service, observe } = await start();
  t.after(() => service[Symbol.asyncDispose]());
  const client = await service.openAs('ada');
  assert.match(readText((await client.get(PATH)).body), /no version of this model is served/);
  await observe();
  // The serving process follows a promotion a moment later.
  const form = await waitUntil(async () => {
    const page = await client.get(PATH);
    return /Known are/.test(page.body) && page;
  });
  assert.match(form.body, /name="quantile" type="text" value="0\.9"/);
  assert.match(readText(form.body), /Known are 10\.0\.0\.0, 10\.0\.0\.1, 10\.0\.0\.2\./);
  assert.doesNotMatch(form.body, /id="answer"/);

  const { body } = await client.get(QUESTION);
  const text = readText(body);
  const limit =
    /The servers can take (at least |about )?([\d.,]+) requests a second, with [\d.,]+ under way on average; /;
  assert.match(text, limit);
  assert.match(text, /Version 1; prompts of [\d,]+ tokens and answers of 150 on average/);
  assert.match(text, /p90 TTFT [\d.,]+ ms at [\d.,]+ requests a second[; ].*p90 TPOT [\d.,]+ ms at/);
  assert.match(text, /Latency by rate of requests .*Requests a second p90 TTFT, ms p90 TPOT, ms 0 /);
  assert.match(text, /Headroom by server .*Can have under way Under way now Room Used 10\.0\.0\.0 [\d.]+ \d+ [\d–]/);
  assert.match(body, /name="tpot_ms" type="text" value="60"/, 'a link keeps the question');
  assert.equal((body.match(/<figure class="chart">/g) ?? []).length, 2);
  if (/at least/.test(text)) {
    assert.equal(
      (body.match(/<path class="line slow beyond" d="M[^"]+L/g) ?? []).length,
      2,
      'continued lines are dashed',
    );
    assert.match(text, /; extrapolated above [\d.,]+ .*Extrapolated: no sample has so many requests under way/);
    assert.match(text, /[\d.,]+ \(extrapolated\)/);
  }
  assert.match((await client.get('/models/model?name=m')).body, /href="\/models\/capacity\?name=m"/);
});

const refusals: [field: string, value: string, message: string][] = [
  ['ttft_ms', 'soon', '“Limit of TTFT, ms” must be a number from 0.001 to 86400000, got &quot;soon&quot;.'],
  ['tpot_ms', '-1', '“Limit of TPOT, ms” must be a number from 0.001 to 86400000, got &quot;-1&quot;.'],
  ['quantile', '90', '“Share of requests within the limits” must be a number from 0.5 to 0.99, got &quot;90&quot;.'],
  ['output_tokens', '0', '“Mean length of an answer, tokens” must be a number from 1 to 1000000, got &quot;0&quot;.'],
  [
    'prompt_tokens',
    '1e9',
    '“Mean length of a prompt, tokens” must be a number from 1 to 10000000, got &quot;1e9&quot;.',
  ],
  [
    'output_tokens',
    '',
    '“Mean length of an answer, tokens” must be given, since no sample has the length of its answer.',
  ],
  ['servers', 'x', 'no sample is of the server &quot;x&quot;; known are 10.0.0.0, 10.0.0.1, 10.0.0.2.'],
  ['servers', '10.0.0.1,10.0.0.1', 'the server &quot;10.0.0.1&quot; must be named once.'],
  ['pod_type', 'decode', 'there are 0 samples of the pod type &quot;decode&quot;, and at least 50 are needed'],
];

test('a field that cannot be used is named with what is allowed, and the form keeps what was typed', async (t) => {
  const { service, observe } = await start();
  t.after(() => service[Symbol.asyncDispose]());
  await observe();
  const client = await service.openAs('ada');
  for (const [field, value, message] of refusals) {
    const query = new URL(QUESTION, service.url);
    query.searchParams.set(field, value);
    const { status, body } = await client.get(`${query.pathname}${query.search}`);
    assert.equal(status, 422, field);
    assert.ok(body.includes(message), `${field}: ${readText(body)}`);
    assert.match(body, new RegExp(`name="${field}"[^>]*aria-invalid="true"`));
    assert.ok(body.includes(`name="${field}" type="text" value="${value}"`));
  }
  const without = await client.get(`${PATH}&ttft_ms=&tpot_ms=`);
  assert.match(readText(without.body), /“Limit of TTFT, ms”, “Limit of TPOT, ms” or both must give a limit/);
  const twice = await Promise.all([9100, 9200].map((ms) => client.get(QUESTION.replace('9000', `${ms}`))));
  assert.deepEqual(
    twice.map(({ status }) => status).sort((one, other) => one - other),
    [200, 422],
  );
  assert.equal((await client.get('/models/capacity?name=missing')).status, 404);
  assert.equal((await (await service.openAs('eve')).get(PATH)).status, 404);
});

describe('in a browser', { skip: findReasonToSkipPages() }, () => {
  const browser = useBrowser();

  test('axe finds nothing on the page of the capacity, with and without an answer', async (t) => {
    const { service, observe } = await start();
    t.after(() => service[Symbol.asyncDispose]());
    await observe();
    const page = await browser.openPage(t, { bypassCSP: true });
    await signIn(page, service.url);
    await page.goto(service.url + PATH);
    assert.deepEqual(await findPageFlaws(page, CONTENT), []);
    await page.goto(service.url + QUESTION, { timeout: 120_000 });
    assert.equal(await page.locator('figure.chart').count(), 2);
    assert.deepEqual(await findPageFlaws(page, CONTENT), []);
    await savePictures(page, 'capacity');
  });
});
