/** What the command line shows of a paused webhook. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import { startReceiver } from '../../../test/support/network/receiver.ts';
import { runTrivet } from '../../../test/support/programs/run-trivet.ts';
import { createStorePlace, openTestStore } from '../../../test/support/store/engines.ts';
import { enqueueTestDelivery } from '../../../test/support/webhooks/deliveries-store.ts';
import { startTestWorker, waitForHookQueue } from '../../../test/support/webhooks/delivery-worker.ts';

test('a paused webhook says since when, until when, why, and what ends the pause', async () => {
  const place = await createStorePlace('sqlite');
  await using store = await openTestStore(place);
  let status = 429;
  await using receiver = await startReceiver((_, response) =>
    response.writeHead(status, { 'retry-after': '3600' }).end(),
  );
  const env = { TRIVET_DATA_DIR: place.dataDir, WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' };
  const trivet = async (...argv: string[]) => {
    const ended = await runTrivet(argv, { env });
    assert.equal(ended.code, 0, ended.stderr);
    return ended;
  };
  await trivet('user', 'create', '--login', 'ada', '--name', 'Ada');
  await trivet('repo', 'create', 'ada/doors');
  await trivet('hook', 'create', 'ada/doors', '--url', receiver.url);
  {
    await using worker = startTestWorker(store);
    for (let count = 0; count < 8; count += 1) await enqueueTestDelivery(store, { hookId: 1, url: receiver.url });
    worker.wake();
    await waitForHookQueue(store, 1, (row) => row.parked === 1);
  }

  const pause =
    /^Paused since \S+ until \S+: the receiver answered 429 and asked to wait\. "trivet hook test" does not wait/m;
  const shown = await trivet('hook', 'show', 'ada/doors', '1');
  assert.match(shown.stdout, /^state +paused$/m);
  assert.match(shown.stderr, pause);
  const json = JSON.parse((await trivet('hook', 'show', 'ada/doors', '1', '--json')).stdout);
  assert.equal(json.paused_reason, 'retry_after');
  assert.match((await trivet('hook', 'list', 'ada/doors')).stdout, / paused /);
  const deliveries = await trivet('hook', 'deliveries', 'ada/doors', '1');
  assert.match(deliveries.stdout, / pause$/m);
  assert.match(deliveries.stderr, pause);

  status = 200;
  await trivet('hook', 'test', 'ada/doors', '1');
  const free = await trivet('hook', 'show', 'ada/doors', '1');
  assert.match(free.stdout, /^state +on$/m);
  assert.equal(free.stderr, '');
  rmSync(place.dataDir, { recursive: true });
});
