import assert from 'node:assert/strict';
import { createStillWorld } from '../../test/support/basics/still-world.ts';
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
import { migrations } from '../database/migrations/list.ts';
import { type Store, statement } from '../database/store.ts';
import { createLog } from '../telemetry/log.ts';
import { findWatched } from '../webhooks/hooks/troubled-hooks-store.ts';
import { createHookNotices } from '../webhooks/management/hook-notices.ts';
import type { PublishedNotice } from './notice.ts';
import { notifyOfTroubles } from './notice-worker.ts';

const MINUTE_MS = 60_000;
const never = new AbortController().signal;

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
  // The state after the upgrade of a release with one record for both channels.
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
  // The process with the old settings, which has run for long, and the one with the new settings, which has just started.
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
