import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { waitUntil } from '../../../test/support/basics/wait-until.ts';
import type { FormClient } from '../../../test/support/network/form-client.ts';
import { type ConsoleService, readCsrf, startConsoleService } from '../../../test/support/pages/console-service.ts';
import { reportTestRows, saveTestVersion } from '../../../test/support/prediction/model-versions.ts';

interface Stage {
  readonly service: ConsoleService;
  readonly client: FormClient;
}

/** Starts a console, and signs an administrator in. */
async function start(t: TestContext, environment: Readonly<Record<string, string>> = {}): Promise<Stage> {
  const service = await startConsoleService({ PREDICTION_LEARNING: 'false', ...environment });
  t.after(() => service[Symbol.asyncDispose]());
  await service.addUser('ada', true);
  return { service, client: await service.openAs('ada') };
}

function pathOf(name: string, page = 'model'): string {
  return `/models/${page}?${new URLSearchParams({ name }).toString()}`;
}

async function readText(client: FormClient, path: string): Promise<string> {
  const { body } = await client.get(path);
  return body.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ');
}

/** Waits until the page shows the text: the serving process switches shortly after a promotion. */
async function waitFor(client: FormClient, path: string, pattern: RegExp): Promise<string> {
  return await waitUntil(async () => {
    const text = await readText(client, path);
    return pattern.test(text) && text;
  });
}

/** One column for each target: equal versions have equal errors. */
const COMPARED =
  /Measure TTFT TPOT Verdict no clear difference no clear difference Rows 120 120 @\d MAPE % (\S+) (\S+) @\d MAPE % \1 \2 .* 0 to 0 0 to 0 /;

test('a version is promoted and rolled back, each after a page that says what will change', async (t) => {
  const { service, client } = await start(t);
  assert.match(await readText(client, '/models'), /No model has been trained and nothing has been observed yet/);
  const name = 'Qwen/Qwen3 32B?';
  for (let count = 0; count < 2; count += 1)
    await saveTestVersion(service.store, name, { files: ['a.jsonl'], rows: 300 });
  assert.match(await readText(client, '/models'), /Qwen3 32B\? the prior answers 2 versions · 0 samples reported/);
  const page = pathOf(name);
  assert.match(await readText(client, page), /Qwen3 32B\?@2 Created 2026-06-02 .*after Qwen\/Qwen3 32B\?@1 Serve/);
  assert.match(
    await readText(client, page),
    /Files a\.jsonl Rows 300 Statistic of the answers p50 Maximum trees 200 .*Learning rate 0\.2.* Loss absolute /,
  );

  const promote = async (version: string) => {
    const confirmation = `${pathOf(name, 'promote')}&version=${version}`;
    const answer = await client.submit(confirmation, '/models/promote', {});
    assert.equal(answer.location, `${page}&done=promoted`);
  };
  assert.match(await readText(client, `${pathOf(name, 'promote')}&version=1`), /@1 will answer instead of the prior/);
  await promote('1');
  assert.match(
    await readText(client, `${pathOf(name, 'promote')}&version=2`),
    /@2 will answer instead of Qwen\/Qwen3 32B\?@1/,
  );
  const comparison = await readText(client, `${pathOf(name, 'promote')}&version=2`);
  assert.match(comparison, /No samples yet: there is nothing to compare the versions on/);
  await promote('2');
  assert.match(
    await readText(client, '/models'),
    /version 2 is served 2 versions · trained with 300 rows · 0 samples reported · held-out MAPE TTFT \d/,
  );
  assert.match(await readText(client, page), /trained with 300 rows · 0 samples reported/);
  assert.match(await readText(client, page), /version 2 is served .*Go back to Qwen\/Qwen3 32B\?@1.*promoted by ada/);

  const rollback = pathOf(name, 'rollback');
  assert.match(await readText(client, rollback), /@1 will answer again instead of Qwen\/Qwen3 32B\?@2/);
  const stale = await client.readRefusal(
    client.post('/models/rollback', { ...(await readCsrf(client)), name, previous: '7' }),
  );
  assert.deepEqual([stale.status, /it would lead to version 1 by now/.test(stale.body)], [422, true]);
  const rolledBack = await client.submit(rollback, '/models/rollback', {});
  assert.equal(rolledBack.location, `${page}&done=rolled_back`);
  assert.match(await readText(client, page), /version 1 is served.*@2 rolled back promoted by ada/);
  assert.match(await readText(client, rollback), /No other version was served before this one/);
  const gone = await client.readRefusal(
    client.post('/models/promote', { ...(await readCsrf(client)), name, version: '9' }),
  );
  assert.deepEqual([gone.status, /Cannot find version 9/.test(gone.body)], [422, true]);
  assert.equal((await client.get(`${pathOf(name, 'promote')}&version=9`)).status, 404);
  assert.equal((await client.get(pathOf('missing'))).status, 404);
});

test('what gateways reported shows as accuracy, by server and as samples by load', async (t) => {
  const { service, client } = await start(t);
  await saveTestVersion(service.store, 'm');
  await client.submit(`${pathOf('m', 'promote')}&version=1`, '/models/promote', {});
  // Factors are those of the version that this process serves.
  await waitFor(client, pathOf('m'), /10\.0\.0\.\d × \d/);
  await reportTestRows(service.url, 'm', 120);
  await waitFor(client, pathOf('m'), /aggregate TTFT .* 120/);
  // Errors by server are stored apart from those of all.
  const shown = await waitFor(client, pathOf('m'), /10\.0\.0\.\d × \S+ × \S+ \d/);
  assert.match(shown, /trained with 300 rows · 120 samples reported/);
  assert.match(shown, /aggregate TTFT \d+(\.\d+)? [+−]?\d+(\.\d+)? \d+(\.\d+)? 120/);
  assert.match(shown, /10\.0\.0\.\d × 0\.\d\d × 0\.\d\d \d+(\.\d+)? \([+−]?\d/);
  assert.match(shown, /Requests waiting Range Share Rows below 1 \d+/);
  await saveTestVersion(service.store, 'm');
  const comparison = await readText(client, `${pathOf('m', 'promote')}&version=2`);
  assert.match(comparison, /Both predict the same 120 samples, the newest, each without what servers have shown since/);
  assert.match(comparison, COMPARED);
  await client.submit(`${pathOf('m', 'promote')}&version=2`, '/models/promote', {});
  const way = await readText(client, pathOf('m', 'rollback'));
  assert.match(way, /m@1 will answer again instead of m@2\. /);
  assert.match(way, COMPARED);
});

test('pages about models are there for administrators only, their forms neither', async (t) => {
  const { service, client } = await start(t);
  await saveTestVersion(service.store, 'm');
  await service.addUser('eve');
  const eve = await service.openAs('eve');
  const paths = ['/models', pathOf('m'), `${pathOf('m', 'promote')}&version=1`, pathOf('m', 'rollback')];
  for (const path of paths) {
    assert.equal((await eve.get(path)).status, 404, path);
    assert.equal((await client.get(path)).status, 200, path);
  }
  const csrf = await readCsrf(eve);
  for (const form of ['/models/promote', '/models/rollback']) {
    assert.equal(
      (await eve.readRefusal(eve.post(form, { ...csrf, name: 'm', version: '1', previous: '' }))).status,
      404,
    );
    assert.equal((await client.readRefusal(client.post(form, { name: 'm', version: '1', previous: '' }))).status, 403);
  }
  assert.match(await readText(client, '/models'), /the prior answers/);
  assert.doesNotMatch((await eve.get('/')).body, /href="\/models"/);
  assert.match((await client.get('/')).body, /href="\/models"/);
});

const VLLM = 'vllm:num_requests_running 1\nvllm:num_requests_waiting 0\nvllm:kv_cache_usage_perc 0.5\n';

/** Starts an inference server, and returns the address of its metrics. */
async function serveMetrics(t: TestContext, text: string): Promise<{ readonly url: string; stop(): void }> {
  const server = createServer((_request, response) => response.end(text)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  t.after(stop);
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`, stop };
}

test('scraped servers show with kind, age and state, those that are not used first, with the reason', async (t) => {
  const [busy, wrong, gone] = [
    await serveMetrics(t, VLLM),
    await serveMetrics(t, '<b>up 1</b>'),
    await serveMetrics(t, VLLM),
  ];
  const { client } = await start(t, {
    PREDICTION_SCRAPE: `busy=${busy.url},wrong=${wrong.url},gone=${gone.url}`,
    PREDICTION_SCRAPE_INTERVAL_MS: '50',
    PREDICTION_SCRAPE_STALE_MS: '500',
  });
  await waitFor(client, '/models', /busy vLLM fresh 0(\.\d+)? s –/);
  gone.stop();
  const states =
    /wrong – refused never read Cannot read the metrics: one of .* must be among them gone vLLM stale \d(\.\d+)? s .*REFUSED.* busy vLLM fresh/;
  await waitFor(client, '/models', states);
});

test('a service that scrapes no servers shows no table of them', async (t) => {
  const { client } = await start(t);
  assert.doesNotMatch(await readText(client, '/models'), /Scraped servers/);
});

test('names that callers made up are shown as text', async (t) => {
  const { service, client } = await start(t);
  const attack = '"><script>alert(1)</script>';
  await saveTestVersion(service.store, attack, { [attack]: attack });
  await reportTestRows(service.url, `${attack}2`, 1);
  for (const path of ['/models', pathOf(attack), `${pathOf(attack, 'promote')}&version=1`, pathOf(`${attack}2`)]) {
    const { body, status } = await client.get(path);
    assert.equal(status, 200, path);
    assert.doesNotMatch(body, /<script(?! type="module" src="\/assets\/)/, path);
    assert.match(body, /&lt;script&gt;alert\(1\)/, path);
  }
});
