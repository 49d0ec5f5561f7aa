/** The search field of the delivery log: the meanings of its text, its pages, and where a search stops. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FormClient } from '../../../test/support/network/form-client.ts';
import { createHook, type Stage, startHookPages } from '../../../test/support/pages/hook-pages.ts';
import { enqueueTestDelivery, fillTestLog } from '../../../test/support/webhooks/deliveries-store.ts';
import { statement } from '../../database/store.ts';

const setSubjectSql = statement('test-set-subject', 'UPDATE delivery_contents SET subject = $2 WHERE delivery_id = $1');

async function openLog({ client, receiver, service }: Stage) {
  const path = await createHook(client, receiver.url);
  const hookId = Number(path.split('/').at(-1));
  const add = async (subject: string) => {
    const id = await enqueueTestDelivery(service.store, { hookId, url: receiver.url });
    await service.store.write(setSubjectSql, [id, subject]);
    return id;
  };
  return { log: `${path}/deliveries`, hookId, add };
}

async function readIds(client: FormClient, path: string) {
  const { body } = await client.get(path);
  const ids = [...body.matchAll(/\/deliveries\/(\d+)[^"]*"><strong>/g)].map(([, id]) => Number(id));
  const older = /href="([^"]+before=\d+)"/.exec(body)?.[1]?.replaceAll('&amp;', '&');
  return { ids, older, body };
}

test('digits find a branch or a tag of that name beside the issue and the delivery of that number', async (t) => {
  const stage = await startHookPages(t);
  const { log, add } = await openLog(stage);
  const issue = await add('#20261128');
  const tag = await add('20261128');
  const long = await add('9999999999999999');
  const delivery = await add('main');
  const branch = await add(String(delivery));
  for (const [text, expected] of [
    ['20261128', [tag, issue]],
    ['#20261128', [issue]],
    [String(delivery), [branch, delivery]],
    ['9999999999999999', [long]],
    ['2026112', []],
  ] as const) {
    const { ids } = await readIds(stage.client, `${log}?${new URLSearchParams({ q: text }).toString()}`);
    assert.deepEqual(ids, expected, text);
  }
});

test('the pages of a search with two meanings follow each other, with each delivery once', async (t) => {
  const stage = await startHookPages(t);
  const { log, add } = await openLog(stage);
  const added: number[] = [];
  // The newest matches of one meaning fill a page before the first of the other.
  for (let count = 0; count < 60; count += 1) added.push(await add(count < 30 ? '7' : '#7'));
  const seen: number[][] = [];
  for (let path: string | undefined = `${log}?q=7`; path !== undefined; ) {
    const { ids, older } = await readIds(stage.client, path);
    seen.push(ids);
    path = older;
  }
  assert.deepEqual(seen.flat(), added.toReversed());
  assert.ok(seen.length <= 4, `${seen.length} pages`);
});

test('a search that stops before the end of the log does not say that nothing matches', async (t) => {
  const stage = await startHookPages(t);
  const { log, hookId } = await openLog(stage);
  await fillTestLog(stage.service.store, { hookId, rows: 20_001 });
  const cut = await readIds(stage.client, `${log}?q=develop`);
  assert.match(cut.body, /No delivery matches among those that were searched\. Older ones were not searched yet\./);
  assert.match(cut.body, />Search older ones</);
  assert.match((await stage.client.get(cut.older ?? '')).body, /No delivery matches\./);
});

test('the number of a delivery finds it on the first page, however many newer ones there are', async (t) => {
  const stage = await startHookPages(t);
  const { log, hookId, add } = await openLog(stage);
  const old = 1_000_000_000;
  await fillTestLog(stage.service.store, { hookId, rows: 20_002, firstId: old });
  const branch = await add(String(old));
  const first = await readIds(stage.client, `${log}?q=${old}`);
  assert.deepEqual(first.ids, [branch, old]);
  assert.match(first.body, />Search older ones</);
  const last = await readIds(stage.client, first.older ?? '');
  assert.deepEqual([last.ids, last.older], [[], undefined]);
});
