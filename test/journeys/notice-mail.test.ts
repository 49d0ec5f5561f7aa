/** A webhook whose receiver is gone: its owner gets a mail through a real mail server, and the webhook of notices an issue. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { signBody } from '../../src/webhooks/profiles/signature.ts';
import { findReasonToSkipMail, startSmtpServer } from '../support/mail/smtp-server.ts';
import { startReceiver } from '../support/network/receiver.ts';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { createDataDir, startProgram } from '../support/programs/start-program.ts';

const KEY = 'sesame';
const NOTICES = { NOTICE_REPOSITORY: 'ops/notices' };

test('the owner of a webhook that was disabled gets a mail that names it, and metrics count the mail', {
  skip: findReasonToSkipMail(),
}, async () => {
  await using smtp = await startSmtpServer();
  await using chat = await startReceiver();
  await using receiver = await startReceiver((_, response) => void response.writeHead(410).end('gone'));
  const dataDir = createDataDir();
  const mail = {
    SMTP_HOST: '127.0.0.1',
    SMTP_PORT: String(smtp.port),
    SMTP_SECURITY: 'none',
    MAIL_FROM: 't@example.org',
  };
  const env = {
    ...mail,
    TRIVET_DATA_DIR: dataDir,
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    PREDICTION_LEARNING: 'off',
    ...NOTICES,
  };
  const trivet = async (line: string) => {
    const { code, stdout, stderr } = await runTrivet(line.split(' '), { env });
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };
  await trivet('user create --login ada --name Ada --email ada@example.org');
  await trivet('repo create ada/doors');
  await trivet(`hook create ada/doors --url ${receiver.url}`);
  await trivet('org create ops --owner ada');
  await trivet('repo create ops/notices --private');
  await trivet(`hook create ops/notices --url ${chat.url} --secret ${KEY} --events issue`);
  await using program = await startProgram(env, dataDir);
  await trivet('event send ada/doors --sample');
  const { to, subject, text } = await smtp.waitForMail(1);
  assert.deepEqual([to, subject], [['ada@example.org'], 'A webhook of ada/doors is disabled']);
  assert.match(text, /410/);
  assert.match(text, /\/webhooks\/ada\/doors\/1/);

  await chat.waitFor(1);
  const [delivered] = chat.received;
  assert.equal(
    delivered?.headers['x-gitcode-signature-256'],
    signBody(Buffer.from(KEY), delivered?.body ?? Buffer.of()),
  );
  const issue = JSON.parse(String(delivered?.body)) as { object_attributes: { title: string; description: string } };
  assert.equal(issue.object_attributes.title, subject);
  assert.match(issue.object_attributes.description, /410[\s\S]*\/webhooks\/ada\/doors\/1/);

  await trivet('user invite --login grace --name Grace --email grace@example.org --mail');
  const invitation = await smtp.waitForMail(2);
  assert.deepEqual(invitation.to, ['grace@example.org']);
  assert.match(invitation.text, /\/password\?token=/);
  const metrics = await (await fetch(`${program.httpUrl}/metrics`)).text();
  assert.match(metrics, /^trivet_mails_total\{outcome="sent"\} \d/m);
  assert.match(metrics, /^trivet_mails_waiting \d/m);
});
