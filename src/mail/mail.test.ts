import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { after, describe, test } from 'node:test';
import { createCertificate } from '../../test/support/basics/certificate.ts';
import { createStillWorld } from '../../test/support/basics/still-world.ts';
import { findReasonToSkipMail, startSmtpServer } from '../../test/support/mail/smtp-server.ts';
import { forEachEngine } from '../../test/support/store/engines.ts';
import { parseConfig } from '../config/config.ts';
import type { Store } from '../database/store.ts';
import { createSecretCipher } from '../encryption/secret-cipher.ts';
import { createLog } from '../telemetry/log.ts';
import type { Mail } from './mail.ts';
import { listDueMails } from './mail-store.ts';
import { sendDueMails } from './mail-worker.ts';
import { createMailer } from './mailer.ts';
import { openSmtp, type Smtp } from './smtp.ts';

const mail: Mail = {
  to: 'ada@example.org',
  subject: 'Choose a new password – Ünal',
  paragraphs: ['Hello Ada,', 'A <b>person</b> asked.'],
  link: { label: 'Open this', url: 'https://id.example.org/?a=1&b=2' },
  footer: 'Trivet',
};

const never = new AbortController().signal;

function openTestSmtp(port: number, more: Readonly<Record<string, string>> = {}): Smtp {
  const plain = {
    SMTP_HOST: '127.0.0.1',
    SMTP_PORT: String(port),
    SMTP_SECURITY: 'none',
    MAIL_FROM: 'T <t@example.org>',
  };
  return openSmtp(parseConfig({ ...plain, ...more }).mail) as Smtp;
}

function createSender(store: Store, smtp: Smtp) {
  const world = createStillWorld();
  const cipher = createSecretCipher([new Uint8Array(32).fill(1)], world);
  const mailer = createMailer({ cipher, world });
  const queue = (one: Mail, lifetimeMs?: number) => store.writeAll([mailer.queueStatement(one, lifetimeMs)]);
  const taken = new Map();
  const send = (on: Store = store, by = smtp, signal = never) =>
    sendDueMails(
      { store: on, cipher, world: { ...world, isClockTrusted: () => true }, log: createLog('silent'), smtp: by, taken },
      signal,
    );
  const countWaiting = async () =>
    (await listDueMails(store, { nowMs: Number.MAX_SAFE_INTEGER, latestMs: Number.MAX_SAFE_INTEGER, limit: 100 }))
      .length;
  return { world, cipher, queue, send, countWaiting };
}

describe('with a mail server', { skip: findReasonToSkipMail() }, async () => {
  const server = await startSmtpServer();
  after(() => server[Symbol.asyncDispose]());

  forEachEngine('a mail arrives as text and HTML, and its row is gone', async (store) => {
    const { queue, send, countWaiting } = createSender(store, openTestSmtp(server.port));
    const before = server.mails.length;
    await queue(mail);
    await send();
    const received = await server.waitForMail(before + 1);
    assert.deepEqual([received.from, received.to, received.subject], ['t@example.org', [mail.to], mail.subject]);
    assert.match(
      received.text,
      /A <b>person<\/b> asked\.\n\nOpen this:\nhttps:\/\/id\.example\.org\/\?a=1&b=2\n\n-- \nTrivet/,
    );
    assert.match(
      received.html,
      /A &lt;b&gt;person&lt;\/b&gt; asked\..*href="https:\/\/id\.example\.org\/\?a=1&amp;b=2"/s,
    );
    assert.equal(await countWaiting(), 0);
  });

  forEachEngine('an address with a comma is one recipient', async (store) => {
    const { queue, send } = createSender(store, openTestSmtp(server.port));
    const before = server.mails.length;
    await queue({ ...mail, to: 'grace,ada@example.org' });
    await send();
    assert.deepEqual((await server.waitForMail(before + 1)).to, ['"grace,ada"@example.org']);
  });

  forEachEngine('two processes send each mail once', async (store, { openAnother }) => {
    const smtp = openTestSmtp(server.port);
    const { queue, send } = createSender(store, smtp);
    const other = await openAnother();
    const before = server.mails.length;
    for (let count = 0; count < 30; count += 1) await queue({ ...mail, subject: `Mail ${count}` });
    await Promise.all([send(store), send(other), send(store), send(other)]);
    await server.waitForMail(before + 30);
    const subjects = server.mails.slice(before).map(({ subject }) => subject);
    assert.deepEqual([subjects.length, new Set(subjects).size], [30, 30]);
  });

  forEachEngine('a mail whose row could not be deleted once it was sent is not sent again', async (store) => {
    const { world, queue, send, countWaiting } = createSender(store, openTestSmtp(server.port));
    const before = server.mails.length;
    await queue(mail);
    let isAway = true;
    const write: Store['write'] = async (one, parameters) => {
      if (isAway && one.name === 'delete-mail') throw new Error('The database is away');
      return await store.write(one, parameters);
    };
    await assert.rejects(send({ ...store, write }), /away/);
    await server.waitForMail(before + 1);
    isAway = false;
    // Its lease has ended.
    world.moveMs(16 * 60_000);
    await send({ ...store, write });
    assert.deepEqual([server.mails.length, await countWaiting()], [before + 1, 0]);
  });

  forEachEngine(
    'a mail that is refused for now comes later under the same id; one refused for good is given up',
    async (store) => {
      const { world, queue, send, countWaiting } = createSender(store, openTestSmtp(server.port));
      const busy = `busy@${crypto.randomUUID()}.example.org`;
      const before = server.mails.length;
      await queue({ ...mail, to: busy });
      await queue({ ...mail, to: 'unknown@example.org' });
      await send();
      assert.deepEqual([server.mails.length, await countWaiting()], [before, 1]);
      await send();
      assert.equal(server.mails.length, before, 'not before its time');
      world.moveMs(60_001);
      await send();
      assert.deepEqual((await server.waitForMail(before + 1)).to, [busy]);
      assert.equal(await countWaiting(), 0);
    },
  );

  forEachEngine(
    'a mail of a process that died in the middle is sent by another, and an old one is given up',
    async (store) => {
      const { world, queue, send, countWaiting } = createSender(store, openTestSmtp(server.port));
      const started = Promise.withResolvers<void>();
      const dies: Smtp = {
        send: () => {
          started.resolve();
          return new Promise(() => {});
        },
        check: () => Promise.resolve(),
      };
      const before = server.mails.length;
      await queue(mail);
      void send(store, dies);
      await started.promise;
      await send();
      assert.equal(server.mails.length, before, 'the other one has it');
      world.moveMs(15 * 60_000 + 1);
      await send();
      await server.waitForMail(before + 1);
      await queue(mail, 1000);
      world.moveMs(1001);
      await send();
      assert.deepEqual([server.mails.length, await countWaiting()], [before + 1, 0]);
    },
  );

  forEachEngine('a stop ends the attempt under way, and the mail goes later', async (store) => {
    const stopping = new AbortController();
    const started = Promise.withResolvers<void>();
    const stuck: Smtp = {
      send: (_, __, signal) => {
        started.resolve();
        return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
      },
      check: () => Promise.resolve(),
    };
    const { world, queue, send, countWaiting } = createSender(store, stuck);
    await queue(mail);
    await queue(mail);
    const sending = send(store, stuck, stopping.signal);
    await started.promise;
    stopping.abort();
    await sending;
    assert.equal(await countWaiting(), 2);
    const before = server.mails.length;
    world.moveMs(60_001);
    await send(store, openTestSmtp(server.port));
    await server.waitForMail(before + 2);
  });

  forEachEngine('a copy of the table has no address and no link in it', async (store) => {
    const { queue } = createSender(store, openTestSmtp(server.port));
    await queue(mail);
    const [row] = await listDueMails(store, {
      nowMs: Number.MAX_SAFE_INTEGER,
      latestMs: Number.MAX_SAFE_INTEGER,
      limit: 1,
    });
    assert.doesNotMatch(Buffer.from(row!.content).toString('latin1'), /example/);
  });

  test('over STARTTLS, with a name and a password, to a server that is known', async (t) => {
    const files = createCertificate();
    await using secure = await startSmtpServer(files);
    const settings = {
      SMTP_HOST: 'localhost',
      SMTP_SECURITY: 'starttls',
      SMTP_USER: 'trivet',
      SMTP_CA_FILE: files.certFile,
    };
    const right = openTestSmtp(secure.port, { ...settings, SMTP_PASSWORD: 'secret' });
    await right.check();
    await right.send(mail, 'one');
    assert.equal((await secure.waitForMail(1)).isEncrypted, true);
    assert.equal(secure.mails[0]?.messageId, '<one@example.org>');
    const faults: [title: string, smtp: Smtp, message: RegExp][] = [
      ['a wrong password', openTestSmtp(secure.port, { ...settings, SMTP_PASSWORD: 'guess' }), /535/],
      [
        'an unknown authority',
        openTestSmtp(secure.port, { SMTP_SECURITY: 'starttls', SMTP_HOST: 'localhost' }),
        /self.signed/i,
      ],
      ['a server without TLS', openTestSmtp(server.port, { SMTP_SECURITY: 'starttls' }), /STARTTLS/],
      ['no server', openTestSmtp(1), /ECONNREFUSED/],
    ];
    for (const [title, smtp, message] of faults)
      await t.test(title, async () => {
        await assert.rejects(smtp.check(), { code: 'unavailable', message });
        await assert.rejects(smtp.send(mail, 'two'), { details: { isFinal: false } });
      });
    assert.equal(secure.mails.length, 1);
    const cut = readFileSync(files.certFile, 'utf8').slice(0, 200);
    for (const content of ['', cut]) {
      writeFileSync(files.certFile, content);
      const open = () => openTestSmtp(secure.port, { ...settings, SMTP_PASSWORD: 'secret' });
      assert.throws(open, { code: 'invalid', message: /^SMTP_CA_FILE ".*" cannot be used: / });
    }
  });
});

const half: [title: string, given: Readonly<Record<string, string>>, message: RegExp][] = [
  ['a server without a sender', { SMTP_HOST: 'a' }, /SMTP_HOST and MAIL_FROM must be given together/],
  ['a name without a password', { SMTP_USER: 'a' }, /SMTP_USER and SMTP_PASSWORD must be given together/],
  ['a sender that is no address', { SMTP_HOST: 'a', MAIL_FROM: 'trivet' }, /MAIL_FROM: must be an email address/],
  [
    'a password in the clear',
    { SMTP_HOST: 'a', MAIL_FROM: 't@a.b', SMTP_USER: 'a', SMTP_PASSWORD: 'b', SMTP_SECURITY: 'none' },
    /would be sent in the clear/,
  ],
];
for (const [title, given, message] of half)
  test(`the settings refuse ${title}`, () => assert.throws(() => parseConfig(given), { message }));
