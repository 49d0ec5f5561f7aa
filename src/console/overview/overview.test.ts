import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '../../../test/support/basics/wait-until.ts';
import type { FormClient } from '../../../test/support/network/form-client.ts';
import { startReceiver } from '../../../test/support/network/receiver.ts';
import { type ConsoleService, startConsoleService } from '../../../test/support/pages/console-service.ts';
import { reportTestRows, saveTestVersion } from '../../../test/support/prediction/model-versions.ts';
import { enqueueTestDelivery } from '../../../test/support/webhooks/deliveries-store.ts';
import { statement } from '../../database/store.ts';
import { promoteModel } from '../../prediction/registry/model-store.ts';
import { holdHookQueueStatement } from '../../webhooks/delivery/queue/delivery-store.ts';
import { chooseTexts } from '../texts/texts.ts';
import { renderOverview } from './overview-pages.ts';
import { listTroubles } from './troubles.ts';

test('the overview shows everyone their own webhooks, and an administrator all of them and the models', async (t) => {
  await using receiver = await startReceiver((request, response) => {
    response.statusCode = request.path.includes('fail') ? 500 : 200;
    response.end();
  });
  const service = await startConsoleService({ PREDICTION_LEARNING: 'false' });
  t.after(() => service[Symbol.asyncDispose]());
  await service.addUser('root', true);
  for (const login of ['ada', 'eve']) await service.addUser(login);
  const [root, ada, eve] = await Promise.all(['root', 'ada', 'eve'].map((login) => service.openAs(login)));
  assert.match(await readOverview(eve!), /Create a repository/);
  const failing = await createTestedHook(ada!, 'ada', `${receiver.url}/fail`);
  const disabled = await createTestedHook(eve!, 'eve', `${receiver.url}/off`);
  await eve!.submit(disabled, `${disabled}/disable`, {});
  await fillModel(service);

  const own = await waitForText(ada!, /Attempts in the last hour 1 0 % accepted/);
  assert.match(own, /Failing webhooks 1 .*Disabled by failures 0 /);
  assert.ok(own.includes(`href="${failing}"`) && !own.includes(disabled));
  assert.doesNotMatch(own, /Latency models/);
  const all = await waitForText(root!, /Attempts in the last hour 2 50 % accepted.*Latency models.* @1 .*TTFT \d/);
  assert.match(all, /Failing webhooks 1 .*Disabled by failures 0 1 switched off by the owner/);
  assert.ok(all.includes(`href="${failing}"`));
  assert.ok(!all.includes(`href="${disabled}"`), 'what its owner switched off needs no attention');
  assert.match(all, /href="\/models\/model\?name=[^"]+">To the model</);
  assert.match(all, /role="img" aria-label="Attempts a minute: 1 accepted, 1 failed"/);
});

test('errors of the prior are not held against the version that was learned from its reports', async (t) => {
  const service = await startConsoleService({ PREDICTION_LEARNING: 'false' });
  t.after(() => service[Symbol.asyncDispose]());
  await service.addUser('root', true);
  const root = await service.openAs('root');
  await reportTestRows(service.url, 'qwen', 200);
  await waitForText(root, /prior TTFT [\d,.]+ – [\d,.]+ 90 200 /);
  await saveTestVersion(service.store, 'qwen');
  await promoteModel(service.store, { name: 'qwen', version: 1, nowMs: Date.now(), reason: 'by a test' });
  const text = await waitForText(root, /@1 TTFT – [\d.]+ – 90 0 /);
  assert.match(text, /Nothing needs attention/);
});

test('a process without webhooks tells the age of a drift too', () => {
  const nowMs = Date.parse('2026-01-02T12:00:00Z');
  const drift = { target: 'ttft', cause: 'error', count: 1, lastAtMs: nowMs - 2 * 3_600_000 } as const;
  const model = {
    name: 'qwen',
    servedVersion: 1,
    versionCount: 1,
    samples: 9,
    targets: [],
    drift: [drift],
    shifts: [],
  };
  const texts = chooseTexts({ language: 'en', timeZone: 'UTC' });
  const { list } = listTroubles(texts, undefined, { models: [model], modelCount: 1, nowMs });
  assert.match(list[0]?.details[0] ?? '', /\b2 (hr|hours)\b/);
});

test('the overview says that all attempts were accepted only if none failed', async () => {
  const texts = chooseTexts({ language: 'en', timeZone: 'UTC' });
  const render = async (accepted: number, failed: number) => {
    const totals = { repositories: 1, hooks: 1, disabled: 0, switchedOff: 0, failing: 0, paused: 0 };
    const hour = { startMs: 0, accepted, failed, medianMs: null, p95Ms: null };
    const backlog = { count: 0, isCut: false, oldest: undefined };
    const webhooks = { nowMs: 0, ofAll: true, totals, troubled: [], backlog, hour, minutes: [] };
    const page = String(await renderOverview(texts, { advice: undefined, webhooks, health: undefined }));
    return /([\d.]+) % accepted/.exec(page)?.[1];
  };
  assert.equal(await render(99_999, 1), '99.9');
  assert.equal(await render(1, 99_999), '0.01');
  assert.equal(await render(100_000, 0), '100');
});

test('a pause that ends within the second is not shown', () => {
  const texts = chooseTexts({ language: 'en', timeZone: 'UTC' });
  const nowMs = 1_000_000;
  const describe = (pausedUntilMs: number) => {
    const hook = {
      id: 1,
      url: 'https://ci.example.org/',
      repository: { ownerLogin: 'ada', path: 'doors' },
      disabledAtMs: null,
      disabledReason: null,
      failingSinceMs: 900_000,
      fails: 6,
      pausedUntilMs,
      pauseReason: 'failures',
      result: null,
      resultCode: 500,
    } as const;
    const totals = { repositories: 1, hooks: 1, disabled: 0, switchedOff: 0, failing: 1, paused: 1 };
    const hour = { startMs: 0, accepted: 0, failed: 6, medianMs: null, p95Ms: null };
    const backlog = { count: 0, isCut: false, oldest: undefined };
    const webhooks = { nowMs, ofAll: true, totals, troubled: [hook], backlog, hour, minutes: [] };
    return listTroubles(texts, webhooks, undefined).list[0]?.details.join() ?? '';
  };
  assert.match(describe(nowMs + 2500), /paused for another 2 sec/);
  assert.doesNotMatch(describe(nowMs + 300), /paused/);
});

test('what webhooks that are off hold is called held, and administrators are led to no page that does not list it', async (t) => {
  await using receiver = await startReceiver();
  const service = await startConsoleService({ PREDICTION_LEARNING: 'false' });
  t.after(() => service[Symbol.asyncDispose]());
  await service.addUser('root', true);
  for (const login of ['ada', 'eve']) await service.addUser(login);
  const [root, ada, eve] = await Promise.all(['root', 'ada', 'eve'].map((login) => service.openAs(login)));
  const held = await createTestedHook(ada!, 'ada', receiver.url);
  assert.match(await readOverview(ada!), /Waiting deliveries 0 nothing waits/);
  await ada!.submit(held, `${held}/disable`, {});
  await holdTestDelivery(service.store, Number(held.split('/').at(-1)), receiver.url);
  const own = await readOverview(ada!);
  assert.match(own, /Waiting deliveries 1 held by webhooks that are off/);
  assert.match(own, /href="\/webhooks"/);

  await eve!.submit('/webhooks/new', '/webhooks/new', { owner: 'eve', name: 'doors', description: '' });
  for (let count = 0; count < 22; count += 1)
    await eve!.submit('/webhooks/eve/doors/new', '/webhooks/eve/doors', {
      url: receiver.url,
      encryption_type: '1',
      password: 'k3y',
      profile: 'gitcode',
    });
  await service.store.write(disableAllOthersSql, [Number(held.split('/').at(-1))]);
  assert.match(await readOverview(eve!), /<a href="\/webhooks">And 2 more webhooks\./);
  const all = await readOverview(root!);
  assert.match(all, /And 2 more webhooks: “trivet hook all list” lists them\./);
  assert.doesNotMatch(all, /href="\/webhooks"/);

  await createTestedHook(ada!, 'ada', receiver.url);
  await ada!.submit(held, `${held}/delete`, { confirm: 'yes' });
  for (const client of [ada!, root!])
    assert.match(await readOverview(client), /Waiting deliveries 0 nothing waits/, 'what it held is canceled');
});

test('every entry of the navigation leads to a page', async (t) => {
  const service = await startConsoleService({ PREDICTION_LEARNING: 'false' });
  t.after(() => service[Symbol.asyncDispose]());
  await service.addUser('root', true);
  const root = await service.openAs('root');
  const { body } = await root.get('/');
  const navigation = body.slice(body.indexOf('<nav'), body.indexOf('</nav>'));
  const paths = new Set([...navigation.matchAll(/href="([^"]+)"/g)].map(([, path]) => path!));
  for (const path of ['/webhooks', '/models', '/docs/api', '/docs/api/events']) assert.ok(paths.has(path), path);
  for (const path of paths) assert.equal((await root.get(path)).status, 200, path);
});

const disableAllOthersSql = statement(
  'test-disable-others',
  `UPDATE hooks SET disabled_at_ms = 1, disabled_reason = 'gone' WHERE id <> $1`,
);

async function holdTestDelivery(store: ConsoleService['store'], hookId: number, url: string): Promise<void> {
  await enqueueTestDelivery(store, { hookId, url });
  await store.writeAll([holdHookQueueStatement(hookId, Date.now())]);
}

async function createTestedHook(client: FormClient, owner: string, url: string): Promise<string> {
  const repository = `/webhooks/${owner}/doors`;
  await client.submit('/webhooks/new', '/webhooks/new', { owner, name: 'doors', description: '' });
  const fields = { url, encryption_type: '1', password: 'k3y', profile: 'gitcode', push_events: '1' };
  const made = await client.submit(`${repository}/new`, repository, fields);
  const path = (made.location ?? '').replace('?done=created', '');
  await client.submit(path, `${path}/test`, {});
  return path;
}

async function fillModel({ store, url }: ConsoleService): Promise<void> {
  await saveTestVersion(store, 'qwen');
  await promoteModel(store, { name: 'qwen', version: 1, nowMs: 1, reason: 'by a test' });
  // The version is loaded a moment after its promotion; until then reports are of the prior.
  await waitUntil(async () => (await readServedId(url)) === 'qwen@1');
  await reportTestRows(url, 'qwen', 100);
}

async function readServedId(url: string): Promise<string> {
  const response = await fetch(`${url}/prediction.v1.PredictionService/Predict`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ targetModel: 'qwen', inputs: [{ inputId: 1 }] }),
  });
  return ((await response.json()) as { metadata: { modelVersion: string } }).metadata.modelVersion;
}

/** Text between tags is parted by one blank; addresses and labels stay. */
async function readOverview(client: FormClient): Promise<string> {
  const { body } = await client.get('/');
  const main = body.slice(body.indexOf('<main'));
  return `${main.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ')}\n${main}`;
}

/** Attempts and reports are counted a moment after they were made. */
async function waitForText(client: FormClient, pattern: RegExp): Promise<string> {
  return await waitUntil(async () => {
    const text = await readOverview(client);
    return pattern.test(text) && text;
  });
}
