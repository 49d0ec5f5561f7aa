/** Creates and reads notices and their mails when a test calls it. */
import { verifyEmail } from '../../../src/authorization/accounts/email-store.ts';
import { listRecipients } from '../../../src/authorization/administration/recipients-store.ts';
import { type Store, statement } from '../../../src/database/store.ts';
import { createSecretCipher } from '../../../src/encryption/secret-cipher.ts';
import type { Mail } from '../../../src/mail/mail.ts';
import { sendDueMails } from '../../../src/mail/mail-worker.ts';
import { createMailer } from '../../../src/mail/mailer.ts';
import type { Smtp } from '../../../src/mail/smtp.ts';
import type { NoticeSource, PublishNotice } from '../../../src/notices/notice.ts';
import { notifyOfTroubles } from '../../../src/notices/notice-worker.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { createHookNotices } from '../../../src/webhooks/management/hook-notices.ts';
import { createStillWorld } from '../basics/still-world.ts';
import { addUser } from '../pages/page-service.ts';

const never = new AbortController().signal;

/** Notices of what these sources find in the store, to people with a verified address. */
export async function watch(
  store: Store,
  createSources: (store: Store) => readonly NoticeSource[],
  publish?: PublishNotice,
) {
  const world = createStillWorld();
  const cipher = createSecretCipher([new Uint8Array(32).fill(1)], world);
  const log = createLog('silent');
  const mailer = createMailer({ cipher, world });
  const ada = await addVerified(store, world, 'ada');
  const mails: Mail[] = [];
  const smtp: Smtp = {
    async send(mail) {
      mails.push(mail);
    },
    check: () => Promise.resolve(),
  };
  const look = (on = store, publishTo = publish, process = { isSettled: true }) =>
    notifyOfTroubles(
      {
        store: on,
        world,
        log,
        mailer,
        publish: publishTo,
        sources: createSources(on),
        listRecipients: (who) => listRecipients(on, who),
        service: 'https://id',
      },
      never,
      process,
    );
  return {
    world,
    ada,
    look,
    /** What was sent since the last call. */
    readMails: async () => {
      mails.length = 0;
      await sendDueMails({ store, cipher, world: { ...world, isClockTrusted: () => true }, log, smtp }, never);
      return mails.map(({ to, subject }) => `${to}: ${subject}`);
    },
  };
}

export async function addVerified(
  store: Store,
  world: ReturnType<typeof createStillWorld>,
  login: string,
  isAdmin = false,
) {
  const user = await addUser({ store, world }, login, isAdmin);
  await verifyEmail(store, { userId: user.id, email: `${login}@example.org`, statements: [] });
  return user;
}

export const hookSources = (store: Store) => [createHookNotices(store, { pagesUrl: 'https://id' })];

/** A webhook (`$1`) of an owner (`$2`) fails since a moment, or does not fail. */
export const failSql = statement(
  'test-fail-hook',
  `INSERT INTO endpoint_queue (hook_id, owner_id, origin, shard, next_at_ms, version, parked, fails, failing_since_ms)
   VALUES ($1, $2, 'o', 0, 0, 1, 0, 1, $3)
   ON CONFLICT (hook_id) DO UPDATE SET failing_since_ms = excluded.failing_since_ms`,
);
export const disableSql = statement(
  'test-disable-hook',
  'UPDATE hooks SET disabled_at_ms = $2, disabled_reason = $3 WHERE id = $1',
);
/** Sets the last answer of the receiver. */
export const answerSql = statement('test-answer-hook', 'UPDATE hooks SET result_code = $2 WHERE id = $1');
