import assert from 'node:assert/strict';
import { insertTestHook } from '../../test/support/deliveries-store.ts';
import { forEachEngine } from '../../test/support/engines.ts';
import { addVerified, hookSources, watch } from '../../test/support/notice-watch.ts';
import { createStillWorld } from '../../test/support/still-world.ts';
import { setLanguageStatement } from '../authorization/account-pages/language-store.ts';
import { switchNoticesStatement } from '../authorization/administration/recipients-store.ts';
import { migrations } from '../database/migrations/list.ts';
import { type Store, statement } from '../database/store.ts';
import { addAlarmsStatements } from '../prediction/observations/drift-alarm-store.ts';
import { createDriftNotices } from '../prediction/observations/drift-notices.ts';
import { createLog } from '../telemetry/log.ts';
import { findWatched } from '../webhooks/hooks/troubled-hooks-store.ts';
import { createHookNotices } from '../webhooks/management/hook-notices.ts';
import { createDiskSource } from './disk-source.ts';
import type { PublishedNotice } from './notice.ts';
import { notifyOfTroubles } from './notice-worker.ts';

const failSql = statement(
  'test-fail-hook',
  `INSERT INTO endpoint_queue (hook_id, owner_id, origin, shard, next_at_ms, version, parked, fails, failing_since_ms)
   VALUES ($1, $2, 'o', 0, 0, 1, 0, 1, $3)
   ON CONFLICT (hook_id) DO UPDATE SET failing_since_ms = excluded.failing_since_ms`,
);
const disableSql = statement(
  'test-disable-hook',
  'UPDATE hooks SET disabled_at_ms = $2, disabled_reason = $3 WHERE id = $1',
);
const answerSql = statement('test-answer-hook', 'UPDATE hooks SET result_code = $2 WHERE id = $1');
const MINUTE_MS = 60_000;
const never = new AbortController().signal;

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

for (const isSeen of [true, false])
  forEachEngine(
    `a webhook that is enabled and disabled again ${isSeen ? 'later' : 'at once'} causes a second notice of that, an hour after the first`,
    async (store) => {
      const published: PublishedNotice[] = [];
      const { world, ada, look, readMails } = await watch(store, hookSources, async (notice) => {
        published.push(notice);
      });
      await insertTestHook(store, { id: 7, url: 'https://ci.example.org/', ownerId: ada.id });
      await store.write(answerSql, [7, 410]);
      await store.write(disableSql, [7, world.nowMs(), '410 Gone']);
      await look();
      assert.match((await readMails()).join(), / is disabled$/);
      world.moveMs(10 * MINUTE_MS);
      await store.write(disableSql, [7, null, null]);
      if (isSeen) await look();
      await store.write(disableSql, [7, world.nowMs(), '410 Gone']);
      await look();
      assert.deepEqual(await readMails(), [], 'not within the hour');
      world.moveMs(51 * MINUTE_MS);
      await look();
      await look();
      world.moveMs(61 * MINUTE_MS);
      await look();
      const mails = await readMails();
      assert.deepEqual([mails.length, published.map(({ state }) => state)], [1, ['disabled', 'disabled']]);
      assert.equal(new Set(published.map(({ key }) => key)).size, 2, 'not taken for the first');
    },
  );

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
    createDiskSource('/var/lib/trivet', () => Promise.resolve(freeBytes)),
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

forEachEngine('the end of a full disk is known to the process of that folder alone', async (store) => {
  const free: Record<string, number> = { '/data': 1e12, '/data2': 0 };
  const sourceOf = (folder: string) => createDiskSource(folder, () => Promise.resolve(free[folder]!));
  const { world, look, readMails } = await watch(store, () => ['/data2', '/data'].map(sourceOf));
  await addVerified(store, world, 'root', true);
  await look();
  assert.match((await readMails()).join(), / is nearly full$/);
  await look();
  assert.deepEqual(await readMails(), [], 'another folder of the host has room');
  free['/data2'] = 1e12;
  await look();
  assert.match((await readMails()).join(), / has room again$/);
});

forEachEngine('each person reads notices in the language that the person chose', async (store) => {
  const { world, ada, look, readMails } = await watch(store, hookSources);
  await store.writeAll([setLanguageStatement(ada.id, 'zh-CN')]);
  await insertTestHook(store, { id: 7, url: 'https://ci.example.org/', ownerId: ada.id });
  await store.write(disableSql, [7, world.nowMs(), 'The receiver answered 410 Gone']);
  await look();
  assert.match((await readMails()).join(), /^ada@example\.org: \S+\/repository-7 的 Webhook 已停用$/);
});

forEachEngine(
  'a notice is published once an hour, also by two processes and after a failure',
  async (store, { openAnother }) => {
    const world = createStillWorld();
    const ada = await addVerified(store, world, 'ada');
    await insertTestHook(store, { id: 7, url: 'https://ci.example.org/services/t0ken?key=t0ken', ownerId: ada.id });
    await store.write(failSql, [7, ada.id, world.nowMs() - 10 * MINUTE_MS]);
    const published: PublishedNotice[] = [];
    let isDown = true;
    const look = (on: Store) =>
      notifyOfTroubles(
        {
          store: on,
          world,
          log: createLog('silent'),
          mailer: undefined,
          publish: async (notice) => {
            published.push(notice);
            if (isDown) throw new Error('the store is away');
          },
          sources: hookSources(on),
          listRecipients: async () => [],
          service: 'https://id',
        },
        never,
        { isSettled: true },
      );
    await look(store);
    isDown = false;
    await Promise.all([look(store), look(await openAnother())]);
    await look(store);
    assert.equal(new Set(published.map(({ key }) => key)).size, 1, 'the key tells the intake that it is the same');
    const attempts = published.length;
    assert.ok(attempts >= 2 && attempts <= 3, String(attempts));
    assert.match(published[0]!.text.subject, /^A webhook of \S+ fails$/);
    assert.match(published[0]!.text.paragraphs.join(), / to https:\/\/ci\.example\.org have failed/);
    assert.doesNotMatch(JSON.stringify(published), /t0ken/, 'the secret of an owner is not for others');
    await store.write(failSql, [7, ada.id, null]);
    await store.write(answerSql, [7, 200]);
    await look(store);
    await look(store);
    assert.deepEqual([published.length, published.at(-1)?.state], [attempts + 1, 'fine']);
    await store.write(failSql, [7, ada.id, world.nowMs() - 10 * MINUTE_MS]);
    await look(store);
    assert.equal(published.length, attempts + 1, 'not within the hour');
    world.moveMs(61 * MINUTE_MS);
    await look(store);
    assert.deepEqual([published.length, published.at(-1)?.state], [attempts + 2, 'failing']);
  },
);

forEachEngine('a notice that cannot be published is mailed all the same, and published later', async (store) => {
  const published: PublishedNotice[] = [];
  let isDown = true;
  const publish = async (notice: PublishedNotice) => {
    if (isDown) throw new Error('the intake is full');
    published.push(notice);
  };
  const { world, ada, look, readMails } = await watch(store, hookSources, publish);
  await insertTestHook(store, { id: 7, url: 'https://ci.example.org/', ownerId: ada.id });
  await store.write(failSql, [7, ada.id, world.nowMs() - 10 * MINUTE_MS]);
  await look();
  assert.match((await readMails()).join(), / fails$/);
  isDown = false;
  await look();
  await look();
  assert.deepEqual([await readMails(), published.map(({ state }) => state)], [[], ['failing']]);
  isDown = true;
  await store.write(failSql, [7, ada.id, null]);
  await store.write(answerSql, [7, 200]);
  await look();
  assert.match((await readMails()).join(), / works again$/);
  isDown = false;
  world.moveMs(180 * MINUTE_MS);
  await look();
  await look();
  assert.deepEqual([await readMails(), published.map(({ state }) => state)], [[], ['failing', 'fine']]);
});

forEachEngine('webhooks that get the notices cause none themselves', async (store) => {
  const world = createStillWorld();
  const ada = await addVerified(store, world, 'ada');
  for (const id of [7, 8]) {
    await insertTestHook(store, { id, url: 'https://ci.example.org/', ownerId: ada.id });
    await store.write(failSql, [id, ada.id, world.nowMs() - 10 * MINUTE_MS]);
  }
  const list = async (noticeRepository?: string) =>
    (await createHookNotices(store, { pagesUrl: 'https://id', noticeRepository }).listTroubles(world.nowMs())).map(
      ({ cause }) => cause,
    );
  assert.deepEqual(await list(), ['hook:7', 'hook:8']);
  const watched = await findWatched(store, 7);
  assert.deepEqual(await list(`${watched?.ownerLogin}/REPOSITORY-7`), ['hook:8']);
});

const insertNoticeSql = statement(
  'test-insert-notice',
  'INSERT INTO notices (cause, state, sent_at_ms) VALUES ($1, $2, $3)',
);

forEachEngine(
  'a trouble that was published before an upgrade is not published again, and its end is',
  async (before, { openAnother }) => {
    await before.write(insertNoticeSql, ['hook:7', 'failing', createStillWorld().nowMs() - 120 * MINUTE_MS]);
    const store = await openAnother({ migrations });
    const published: PublishedNotice[] = [];
    const { world, ada, look, readMails } = await watch(store, hookSources, async (notice) => {
      published.push(notice);
    });
    await insertTestHook(store, { id: 7, url: 'https://ci.example.org/', ownerId: ada.id });
    await store.write(failSql, [7, ada.id, world.nowMs() - 180 * MINUTE_MS]);
    await look();
    assert.deepEqual([await readMails(), published], [[], []]);
    await store.write(failSql, [7, ada.id, null]);
    await store.write(answerSql, [7, 200]);
    await look();
    assert.match((await readMails()).join(), / works again$/);
    assert.deepEqual(
      published.map(({ state }) => state),
      ['fine'],
    );
  },
  { migrations: migrations.filter(({ name }) => name !== 'published-notices' && name !== 'notice-times') },
);

forEachEngine('the end of a trouble that notices by mail alone began is not published later', async (store) => {
  const { world, ada, look } = await watch(store, hookSources);
  await insertTestHook(store, { id: 1, url: 'https://ci.example.org/', ownerId: ada.id });
  await store.write(failSql, [1, ada.id, world.nowMs() - 10 * MINUTE_MS]);
  await look();
  // As the upgrade of a release with one record for both ways leaves it.
  const copy = 'INSERT INTO published_notices (cause, state, sent_at_ms) SELECT cause, state, sent_at_ms FROM notices';
  await store.write(statement('test-copy-notices', copy), []);
  world.moveMs(10 * MINUTE_MS);
  await look();
  await store.write(failSql, [1, ada.id, null]);
  await store.write(answerSql, [1, 200]);
  world.moveMs(61 * MINUTE_MS);
  const published: PublishedNotice[] = [];
  await look(store, async (notice) => {
    published.push(notice);
  });
  assert.deepEqual(published, []);
});

forEachEngine('a process without a repository for notices leaves the records of one beside it', async (store) => {
  const published: PublishedNotice[] = [];
  const publish = async (notice: PublishedNotice) => {
    published.push(notice);
  };
  const { world, ada, look } = await watch(store, hookSources);
  await insertTestHook(store, { id: 1, url: 'https://ci.example.org/', ownerId: ada.id });
  await store.write(failSql, [1, ada.id, world.nowMs() - 10 * MINUTE_MS]);
  await look(store, publish);
  // The one of the old settings, which has run for long, and the one of the new settings, which has just started.
  await look(store);
  world.moveMs(61 * MINUTE_MS);
  await look(store, undefined, { isSettled: false });
  await look(store, publish);
  await store.write(failSql, [1, ada.id, null]);
  await store.write(answerSql, [1, 200]);
  await look(store, publish);
  assert.deepEqual(
    published.map(({ state }) => state),
    ['failing', 'fine'],
  );
});
