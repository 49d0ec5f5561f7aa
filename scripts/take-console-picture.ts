/** Takes the picture of the console that the README shows: `npm run picture`. The data is made up; the pages are the real ones. */
import assert from 'node:assert/strict';
import { insertPasskeyStatement } from '../src/authorization/accounts/passkey-store.ts';
import { promoteModel } from '../src/prediction/registry/model-store.ts';
import {
  addDeliveryMinutes,
  DURATION_EDGES_MS,
  minuteOf,
} from '../src/webhooks/delivery/statistics/delivery-minute-store.ts';
import { waitUntil } from '../test/support/basics/wait-until.ts';
import type { FormClient } from '../test/support/network/form-client.ts';
import { startReceiver } from '../test/support/network/receiver.ts';
import { launchBrowser } from '../test/support/pages/browser.ts';
import { fillSignIn } from '../test/support/pages/browser-pages.ts';
import { type ConsoleService, startConsoleService } from '../test/support/pages/console-service.ts';
import { reportTestRows, saveTestVersion } from '../test/support/prediction/model-versions.ts';

const PICTURE = 'docs/images/console.png';
const MODEL = 'qwen3-32b-instruct';
const REPOSITORY = '/webhooks/ada/doors';

await using receiver = await startReceiver((request, response) => {
  response.statusCode = request.path.includes('legacy') ? 500 : 200;
  response.end();
});
await using service = await startConsoleService({ PREDICTION_LEARNING: 'false' });
const { id: userId } = await service.addUser('ada', true);
const client = await service.openAs('ada');
await addPasskey(service, userId);
const hookIds = await createHooks(client);
await addDeliveryMinutes(service.store, listMinutes(hookIds[0] ?? 0));
await fillModel(service);
await takePicture(service);

/** Without a passkey, the first page would show the advice to add one. */
async function addPasskey({ store }: ConsoleService, owner: string): Promise<void> {
  const key = { id: 'key', name: 'Key', publicKey: Uint8Array.of(1), counter: 0, transports: [] };
  await store.writeAll([insertPasskeyStatement({ ...key, userId: owner, createdAtMs: Date.now() })]);
}

async function createHooks(browser: FormClient): Promise<number[]> {
  await browser.submit('/webhooks/new', '/webhooks/new', { owner: 'ada', name: 'doors', description: '' });
  const fields = { encryption_type: '1', password: 'sample', profile: 'gitcode', push_events: '1' };
  const ids: number[] = [];
  for (const name of ['builds', 'chat', 'legacy', 'mirror']) {
    const url = `${receiver.url}/${name}`;
    const made = await browser.submit(`${REPOSITORY}/new`, REPOSITORY, { ...fields, url });
    const path = (made.location ?? '').replace('?done=created', '');
    await browser.submit(path, `${path}/test`, {});
    if (name === 'mirror') await browser.submit(path, `${path}/disable`, {});
    ids.push(Number(path.split('/').at(-1)));
  }
  return ids;
}

/** Response times of an hour in which the receiver is slower for a while. */
function listMinutes(hookId: number) {
  const now = minuteOf(Date.now());
  return Array.from({ length: 59 }, (_, ago) => {
    const attempts = Math.round(45 + 28 * Math.sin(ago / 8));
    const failed = ago > 8 && ago < 16 ? Math.round(attempts / 8) : 0;
    const slow = failed * 2;
    const durations = [...DURATION_EDGES_MS, 0].map((_edge, range) => {
      if (range === 2) return attempts - slow;
      return range === 4 ? slow : 0;
    });
    return { hookId, minute: now - 1 - ago, accepted: attempts - failed, failed, durations };
  });
}

async function fillModel({ store, url }: ConsoleService): Promise<void> {
  await saveTestVersion(store, MODEL);
  await promoteModel(store, { name: MODEL, version: 1, nowMs: Date.now(), reason: 'better on the newest rows' });
  await waitUntil(async () => {
    const body = JSON.stringify({ targetModel: MODEL, inputs: [{ inputId: 1 }] });
    const headers = { 'content-type': 'application/json' };
    const predict = `${url}/prediction.v1.PredictionService/Predict`;
    const response = await fetch(predict, { method: 'POST', headers, body });
    return ((await response.json()) as { metadata: { modelVersion: string } }).metadata.modelVersion === `${MODEL}@1`;
  });
  await reportTestRows(url, MODEL, 300);
}

async function takePicture({ url }: ConsoleService): Promise<void> {
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, colorScheme: 'light' });
    await page.goto(`${url}/sign-in`);
    await fillSignIn(page);
    await waitUntil(async () => /@1/.test(await page.reload().then(() => page.innerText('main'))));
    assert.equal(await page.locator('h1').count(), 1);
    await page.screenshot({ path: PICTURE, fullPage: true });
    console.log(PICTURE);
  } finally {
    await browser.close();
  }
}
