import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { findReasonToSkipPages } from '../../../test/support/pages/browser.ts';
import { savePictures, signIn, useBrowser } from '../../../test/support/pages/browser-pages.ts';
import { startConsoleService } from '../../../test/support/pages/console-service.ts';
import { findPageFlaws } from '../../../test/support/pages/page-flaws.ts';
import { reportTestRows, saveTestVersion } from '../../../test/support/prediction/model-versions.ts';
import { promoteModel } from '../../prediction/registry/model-store.ts';

/** Names that the pages do not translate. */
const CONTENT = ['ada', 'm'];
const PATH = '/models/effects?name=m';

async function start() {
  const service = await startConsoleService({ PREDICTION_LEARNING: 'false' });
  for (const login of ['ada', 'eve']) await service.addUser(login, login === 'ada');
  await saveTestVersion(service.store, 'm');
  return service;
}

test('inputs are listed by what they matter, and each load has its price', async (t) => {
  const service = await start();
  t.after(() => service[Symbol.asyncDispose]());
  const client = await service.openAs('ada');
  const read = async () => (await client.get(PATH)).body.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ');
  assert.match(await read(), /Nothing can be shown yet/);
  await promoteModel(service.store, { name: 'm', version: 1, nowMs: Date.now(), reason: 'by a test' });
  await reportTestRows(service.url, 'm', 200);
  const text = await read();
  assert.match(text, /m@1, 200 samples/);
  assert.match(text, /TTFT: which inputs matter .* Input Beside the largest Error added Prompt tokens/);
  for (const load of ['Requests running', 'Requests waiting', 'KV cache in use', 'Prompt tokens'])
    assert.match(text, new RegExp(`the price of a load .*${load} [\\d.,]+ ms at [\\d.,]+, [\\d.,]+ ms at [\\d.,]+`));
  assert.equal((await client.get('/models/effects?name=missing')).status, 404);
  assert.equal((await (await service.openAs('eve')).get(PATH)).status, 404);
  assert.match((await client.get('/models/model?name=m')).body, /href="\/models\/effects\?name=m"/);
});

describe('in a browser', { skip: findReasonToSkipPages() }, () => {
  const browser = useBrowser();

  test('axe finds nothing on the page of what matters, with and without samples', async (t) => {
    const service = await start();
    t.after(() => service[Symbol.asyncDispose]());
    const page = await browser.openPage(t, { bypassCSP: true });
    await signIn(page, service.url);
    await page.goto(service.url + PATH);
    assert.deepEqual(await findPageFlaws(page, CONTENT), []);
    await promoteModel(service.store, { name: 'm', version: 1, nowMs: Date.now(), reason: 'by a test' });
    await reportTestRows(service.url, 'm', 200);
    await page.reload();
    assert.equal(await page.locator('figure.chart').count(), 8);
    assert.deepEqual(await findPageFlaws(page, CONTENT), []);
    await savePictures(page, 'effects');
  });
});
