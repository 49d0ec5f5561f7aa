import assert from 'node:assert/strict';
import {
  addVerified,
  answerSql,
  disableSql,
  failSql,
  hookSources,
  watch,
} from '../../test/support/mail/notice-watch.ts';
import { forEachEngine } from '../../test/support/store/engines.ts';
import { insertTestHook } from '../../test/support/webhooks/deliveries-store.ts';
import { setLanguageStatement } from '../authorization/account-pages/language-store.ts';
import { switchNoticesStatement } from '../authorization/administration/recipients-store.ts';
import { type Store, statement } from '../database/store.ts';
import { addAlarmsStatements } from '../prediction/observations/drift-alarm-store.ts';
import { createDriftNotices } from '../prediction/observations/drift-notices.ts';
import { createDiskSource } from './disk-source.ts';
import { recordNoticeOnce } from './notice-store.ts';

const MINUTE_MS = 60_000;

forEachEngine('an owner of many failing webhooks does not delay the mails of others', async (store) => {
  const { world, ada, look, readMails } = await watch(store, hookSources);
  const bob = await addVerified(store, world, 'bob');
  const owners = [...Array.from({ length: 25 }, () => ada), bob];
  for (const [index, { id }] of owners.entries()) {
    await insertTestHook(store, { id: index + 1, url: 'https://ci.example.org/', ownerId: id });
    await store.write(failSql, [index + 1, id, world.nowMs()]);
  }
  world.moveMs(6 * MINUTE_MS);
  for (const expected of ['10 and 1', '10 and 0', '5 and 0', '0 and 0']) {
    await look();
    const mails = await readMails();
    const count = (login: string) => mails.filter((mail) => mail.startsWith(`${login}@`)).length;
    assert.equal(`${count('ada')} and ${count('bob')}`, expected);
  }
});

forEachEngine('an owner receives a notice when a webhook fails, is disabled, and works again', async (store) => {
  const { world, ada, look, readMails } = await watch(store, hookSources);
  await insertTestHook(store, { id: 7, url: 'https://ci.example.org/', ownerId: ada.id });
  const setFailing = (sinceMs: number | null) => store.write(failSql, [7, ada.id, sinceMs]);
  await setFailing(world.nowMs());
  await look();
  assert.deepEqual(await readMails(), [], 'a short outage is no news');
  world.moveMs(6 * MINUTE_MS);
  await look();
  await look();
  assert.match((await readMails()).join(), /^ada@example\.org: A webhook of \S+\/repository-7 fails$/);

  await store.write(disableSql, [7, world.nowMs(), '410 Gone']);
  await look();
  await look();
  assert.match((await readMails()).join(), /^ada@example\.org: A webhook of \S+ is disabled$/);

  await store.write(disableSql, [7, null, null]);
  await store.write(answerSql, [7, 410]);
  await setFailing(null);
  await look();
  assert.deepEqual(await readMails(), [], 'it is enabled, and nothing was accepted yet');
  await store.write(answerSql, [7, 204]);
  await look();
  await look();
  assert.match((await readMails()).join(), /^ada@example\.org: A webhook of \S+ works again$/);
});

forEachEngine('a webhook with a new address that fails too causes a second notice of that', async (store) => {
  const { world, ada, look, readMails } = await watch(store, hookSources);
  await insertTestHook(store, { id: 7, url: 'https://ci.example.org/', ownerId: ada.id });
  await store.write(answerSql, [7, 500]);
  await store.write(failSql, [7, ada.id, world.nowMs() - 6 * MINUTE_MS]);
  await look();
  assert.match((await readMails()).join(), / fails$/);
  world.moveMs(61 * MINUTE_MS);
  await look();
  await store.write(failSql, [7, ada.id, null]);
  await look();
  assert.deepEqual(await readMails(), [], 'the same failure, and then a new address');
  await store.write(failSql, [7, ada.id, world.nowMs()]);
  world.moveMs(6 * MINUTE_MS);
  await look();
  await look();
  const mails = await readMails();
  assert.match(mails.join(), / fails$/);
  assert.equal(mails.length, 1);
});

forEachEngine('a webhook that comes and goes causes one mail of each kind an hour', async (store) => {
  const { world, ada, look, readMails } = await watch(store, hookSources);
  await insertTestHook(store, { id: 7, url: 'https://ci.example.org/', ownerId: ada.id });
  const sent: string[] = [];
  for (let minute = 0; minute < 180; minute += 1) {
    const isFailing = minute % 2 === 0;
    await store.write(failSql, [7, ada.id, isFailing ? world.nowMs() - 10 * MINUTE_MS : null]);
    await store.write(answerSql, [7, isFailing ? 500 : 200]);
    await look();
    for (const mail of await readMails()) sent.push(`${minute} ${/(fails|works again)$/.exec(mail)?.[1]}`);
    world.moveMs(MINUTE_MS);
  }
  assert.deepEqual(sent, ['0 fails', '1 works again', '60 fails', '61 works again', '120 fails', '121 works again']);
});

forEachEngine('two processes send it once', async (store, { openAnother }) => {
  const { world, ada, look, readMails } = await watch(store, hookSources);
  const owners = [ada, await addVerified(store, world, 'bob')];
  const other = await openAnother();
  for (let id = 1; id <= 20; id += 1) {
    const ownerId = owners[id % 2]!.id;
    await insertTestHook(store, { id, url: 'https://ci.example.org/', ownerId });
    await store.write(failSql, [id, ownerId, world.nowMs() - 10 * MINUTE_MS]);
  }
  await Promise.all([look(store), look(other), look(store), look(other)]);
  assert.equal((await readMails()).length, 20);
});

forEachEngine('a process that is behind does not report a trouble after its end', async (store, { openAnother }) => {
  let duringRound = async (): Promise<unknown> => undefined;
  const slowSources = (on: Store) =>
    hookSources(on).map((source) => ({
      ...source,
      listTroubles: async (nowMs: number) => {
        const troubles = await source.listTroubles(nowMs);
        await duringRound();
        return troubles;
      },
    }));
  const { world, ada, look, readMails } = await watch(store, slowSources);
  const other = await openAnother();
  await insertTestHook(store, { id: 7, url: 'https://ci.example.org/', ownerId: ada.id });
  const fail = () => store.write(failSql, [7, ada.id, world.nowMs() - 10 * MINUTE_MS]);
  await fail();
  await look();
  assert.match((await readMails()).join(), /^ada@example\.org: A webhook of \S+ fails$/);
  world.moveMs(61 * MINUTE_MS);
  duringRound = async () => {
    duringRound = async () => undefined;
    await store.write(failSql, [7, ada.id, null]);
    await store.write(answerSql, [7, 204]);
    await look(other);
  };
  await look();
  assert.match((await readMails()).join(), /^ada@example\.org: A webhook of \S+ works again$/);
  world.moveMs(MINUTE_MS / 2);
  await fail();
  await look();
  assert.match((await readMails()).join(), /^ada@example\.org: A webhook of \S+ fails$/);
});

forEachEngine(
  'no notice is sent of a webhook that its owner switched off or deleted, nor to a person who wants no notices',
  async (store) => {
    const { world, ada, look, readMails } = await watch(store, hookSources);
    for (const id of [1, 2]) {
      await insertTestHook(store, { id, url: 'https://ci.example.org/', ownerId: ada.id });
      await store.write(failSql, [id, ada.id, world.nowMs() - 10 * MINUTE_MS]);
    }
    await look();
    assert.equal((await readMails()).length, 2);
    world.moveMs(61 * MINUTE_MS);
    await store.write(disableSql, [1, world.nowMs(), 'Switched off by its owner']);
    await store.write(statement('test-delete-hook', 'DELETE FROM hooks WHERE id = $1'), [2]);
    await look();
    assert.deepEqual(await readMails(), []);
    await store.writeAll([switchNoticesStatement(ada.id, 'off', world.nowMs())]);
    await insertTestHook(store, { id: 3, url: 'https://ci.example.org/', ownerId: ada.id });
    await store.write(failSql, [3, ada.id, world.nowMs() - 10 * MINUTE_MS]);
    await look();
    assert.deepEqual(await readMails(), []);
  },
);

forEachEngine('administrators receive a notice when a model drifts and when a disk is nearly full', async (store) => {
  let freeBytes = 100 * 1024 * 1024;
  const sources = (on: Store) => [
    createDriftNotices(on, 'https://id'),
    createDiskSource('/var/lib/trivet', { host: 'one', readFreeBytes: () => Promise.resolve(freeBytes) }),
  ];
  const { world, look, readMails } = await watch(store, sources);
  await addVerified(store, world, 'root', true);
  const alarm = { targetModel: 'llama', target: 'ttft', cause: 'error', count: 1, lastAtMs: world.nowMs() } as const;
  await store.writeAll(addAlarmsStatements([alarm]));
  await look();
  await look();
  const subjects = (await readMails()).map((line) => line.replace(/disk of \S+/, 'disk of a host'));
  assert.deepEqual(subjects.toSorted(), [
    'root@example.org: The disk of a host is nearly full',
    'root@example.org: The model llama drifts',
  ]);
  freeBytes = 0;
  world.moveMs(3 * 60 * MINUTE_MS);
  await look();
  await look();
  assert.deepEqual(await readMails(), ['root@example.org: The model llama had no drift alarm for an hour']);
  freeBytes = 1100 * 1024 * 1024;
  await look();
  assert.deepEqual(await readMails(), [], 'hardly more than the limit');
  freeBytes = 1e12;
  await look();
  await look();
  assert.match((await readMails()).join(), /^root@example\.org: The disk of \S+ has room again$/);
  freeBytes = 0;
  await look();
  assert.match((await readMails()).join(), / is nearly full$/);
  await store.writeAll(addAlarmsStatements([{ ...alarm, lastAtMs: world.nowMs() }]));
  await look();
  assert.match((await readMails()).join(), / drifts$/);
});

forEachEngine('a full disk causes one notice, and its end another, whatever host the service is on', async (store) => {
  let [host, freeBytes] = ['pod-1', 0];
  const readFreeBytes = () => Promise.resolve(freeBytes);
  const { world, look, readMails } = await watch(store, () => [createDiskSource('/data', { host, readFreeBytes })]);
  await addVerified(store, world, 'root', true);
  await look();
  assert.deepEqual(await readMails(), ['root@example.org: The disk of pod-1 is nearly full']);
  host = 'pod-2';
  world.moveMs(3 * 60 * MINUTE_MS);
  await look();
  assert.deepEqual(await readMails(), [], 'the pod of the next start');
  freeBytes = 1e12;
  await look();
  await look();
  assert.deepEqual(await readMails(), ['root@example.org: The disk of pod-2 has room again']);
});

forEachEngine(
  'a full disk that had the name of its host in its cause ends with the trouble of the disk',
  async (store) => {
    let freeBytes = 1100 * 1024 * 1024;
    const readFreeBytes = () => Promise.resolve(freeBytes);
    const sources = () => [createDiskSource('/data', { host: 'pod-2', readFreeBytes })];
    const { world, look, readMails } = await watch(store, sources);
    await addVerified(store, world, 'root', true);
    const nowMs = world.nowMs();
    const former = {
      channel: 'mail',
      cause: 'disk:pod-1:/data',
      state: 'full',
      nowMs,
      quietUntilMs: 0,
      statements: [],
    } as const;
    await store.call(recordNoticeOnce, former);
    await look();
    assert.deepEqual(await readMails(), []);
    freeBytes = 1e12;
    await look();
    await look();
    assert.deepEqual(await readMails(), ['root@example.org: The disk of pod-2 has room again']);
  },
);

forEachEngine('each person reads notices in the language that the person chose', async (store) => {
  const { world, ada, look, readMails } = await watch(store, hookSources);
  await store.writeAll([setLanguageStatement(ada.id, 'zh-CN')]);
  await insertTestHook(store, { id: 7, url: 'https://ci.example.org/', ownerId: ada.id });
  await store.write(disableSql, [7, world.nowMs(), 'The receiver answered 410 Gone']);
  await look();
  assert.match((await readMails()).join(), /^ada@example\.org: \S+\/repository-7 的 Webhook 已停用$/);
});
