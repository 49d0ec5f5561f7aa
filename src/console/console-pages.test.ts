import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { Page } from 'playwright-core';
import { type Receiver, startReceiver } from '../../test/support/network/receiver.ts';
import { findReasonToSkipPages } from '../../test/support/pages/browser.ts';
import { readText, signIn, useBrowser } from '../../test/support/pages/browser-pages.ts';
import { type ConsoleService, startConsoleService } from '../../test/support/pages/console-service.ts';
import { ALL_PAGES, findFlawsInChinese, findShownFlaws, PAGE_LIMIT_MS } from '../../test/support/pages/page-flaws.ts';
import { recordTestAccuracy } from '../../test/support/prediction/model-accuracy.ts';
import { reportTestRows, saveTestVersion } from '../../test/support/prediction/model-versions.ts';
import { promoteModel } from '../prediction/registry/model-store.ts';

/** Words that people, servers and models brought, which the pages do not translate. */
const CONTENT =
  'ada doors empty Cranes and gates qwen instruct with rather long name only observed by a test Ada Lovelace gitcode absolute since'.split(
    ' ',
  );

type FindFlaws = (page: Page, content: readonly string[]) => Promise<string[]>;

/** One test for each page: together they take minutes where several browsers share a processor. */
const LANGUAGES: readonly [language: string, findFlawsOf: FindFlaws][] = [
  ['English', (page) => findShownFlaws(page, { language: 'en' })],
  ['Chinese', findFlawsInChinese],
];

describe('in a browser', { skip: findReasonToSkipPages() }, () => {
  const browser = useBrowser();

  async function start(t: TestContext): Promise<{ service: ConsoleService; receiver: Receiver }> {
    const service = await startConsoleService({ PREDICTION_LEARNING: 'false' });
    t.after(() => service[Symbol.asyncDispose]());
    const receiver = await startReceiver((request, response) => {
      response.statusCode = request.path.startsWith('/hook/fail') ? 500 : 200;
      response.end('{"queued":true}');
    });
    t.after(() => receiver[Symbol.asyncDispose]());
    await service.addUser('ada', true);
    return { service, receiver };
  }

  async function checkForFlaws(
    t: TestContext,
    { url }: ConsoleService,
    paths: readonly string[],
    findFlawsOf: FindFlaws,
  ): Promise<void> {
    const page = await browser.openPage(t, { bypassCSP: true });
    await signIn(page, url);
    for (const path of paths)
      await t.test(path, { timeout: PAGE_LIMIT_MS }, async () => {
        await page.goto(url + path);
        assert.deepEqual(await findFlawsOf(page, CONTENT), []);
      });
  }

  for (const [language, findFlawsOf] of LANGUAGES) {
    test(
      `axe finds nothing on any page about webhooks in ${language}, on a phone and on a desktop`,
      ALL_PAGES,
      async (t) => {
        const { service, receiver } = await start(t);
        const paths = await fillWebhooks(await service.openAs('ada'), receiver.url);
        await checkForFlaws(t, service, paths, findFlawsOf);
      },
    );

    test(
      `axe finds nothing on any page about models in ${language}, on a phone and on a desktop`,
      ALL_PAGES,
      async (t) => {
        const { service } = await start(t);
        await checkForFlaws(t, service, await fillModels(service), findFlawsOf);
      },
    );
  }

  test('a webhook is made, tested and found failing without a script, by keyboard', async (t) => {
    const { service, receiver } = await start(t);
    const page = await browser.openPage(t, { javaScriptEnabled: false, viewport: { width: 320, height: 640 } });
    await signIn(page, service.url);
    const press = async (name: string, role: 'link' | 'button' = 'button') => {
      await page.getByRole(role, { name, exact: true }).first().focus();
      const before = page.url();
      await page.keyboard.press('Enter');
      await page.waitForURL((url) => url.href !== before);
    };
    await page.getByText('Menu').click();
    await press('Webhooks', 'link');
    await press('New repository', 'link');
    await page.getByLabel('Name').fill('doors');
    await press('Create repository');
    await press('New webhook', 'link');
    await page.getByLabel('Address').fill(`${receiver.url}/fail`);
    await page.getByLabel('a comment is written').focus();
    await page.keyboard.press('Space');
    await press('Create webhook');
    assert.match(await readText(page), /The webhook is created/);
    await press('Send a test');
    assert.match(await readText(page), /The receiver did not accept the test[\s\S]*Attempt 1 refused 500/);
    assert.match(String(receiver.received[0]?.headers['x-gitcode-signature-256']), /^sha256=/, 'a key was made up');
    await press('ada/doors', 'link');
    assert.match(await readText(page), /ada\/doors[\s\S]*failing[\s\S]*push[\s\S]*comment/);
  });
});

/** Creates a model that is served and observed and one without a version, and returns the pages about them. */
async function fillModels({ store, url }: ConsoleService): Promise<readonly string[]> {
  const name = 'qwen3-32b-instruct-with-a-rather-long-name';
  for (let count = 0; count < 3; count += 1) await saveTestVersion(store, name);
  for (const version of [1, 2]) await promoteModel(store, { name, version, nowMs: version, reason: 'by a test' });
  await reportTestRows(url, name, 100);
  await reportTestRows(url, 'only-observed', 1);
  await recordTestAccuracy(store, { name, nowMs: Date.now() });
  const query = `name=${name}`;
  return [
    '/models',
    `/models/model?${query}&done=promoted`,
    '/models/model?name=only-observed',
    `/models/accuracy?${query}`,
    `/models/accuracy?${query}&window=30d&server=10.0.0.1`,
    '/models/accuracy?name=only-observed&pod_type=other',
    `/models/errors?${query}`,
    `/models/what-if?${query}&input_token_length=2000&num_request_waiting=4&server_ip=10.0.0.1`,
    `/models/what-if?${query}&input_token_length=-1`,
    `/models/capacity?${query}`,
    `/models/capacity?${query}&ttft_ms=0.001&output_tokens=150`,
    `/models/capacity?${query}&tpot_ms=-1`,
    '/models/errors?name=only-observed&target=tpot&window=30d',
    `/models/promote?${query}&version=3`,
    `/models/rollback?${query}`,
    '/models/rollback?name=only-observed',
  ];
}

/** Creates a hook of every kind, and returns the pages about them. */
async function fillWebhooks(
  client: Awaited<ReturnType<ConsoleService['openAs']>>,
  url: string,
): Promise<readonly string[]> {
  for (const name of ['doors', 'empty'])
    await client.submit('/webhooks/new', '/webhooks/new', { owner: 'ada', name, description: 'Cranes and gates' });
  const repository = '/webhooks/ada/doors';
  const hooks: string[] = [];
  const deliveries: string[] = [];
  for (const path of ['', '/fail/'.repeat(40), '/off', '/fresh']) {
    const fields = { url: url + path, encryption_type: '1', password: 'k3y', profile: 'gitcode', push_events: '1' };
    const made = await client.submit(`${repository}/new`, repository, fields);
    const hook = (made.location ?? '').replace('?done=created', '');
    hooks.push(hook);
    if (path === '/fresh') continue;
    const tested = await client.submit(hook, `${hook}/test`, {});
    deliveries.push((tested.location ?? '').replace('?done=tested', ''));
    if (path === '/off') await client.submit(hook, `${hook}/disable`, {});
  }
  const [first = ''] = hooks;
  await client.submit(first, `${first}/key`, { password: '' });
  return [
    '/',
    '/webhooks',
    '/webhooks/new',
    '/webhooks/ada/empty',
    repository,
    `${repository}/new`,
    ...hooks.map((hook) => `${hook}?done=saved`),
    `${first}/change`,
    `${first}/deliveries`,
    `${first}/deliveries?state=blocked`,
    `${first}/deliveries?since=never`,
    ...deliveries,
  ];
}
