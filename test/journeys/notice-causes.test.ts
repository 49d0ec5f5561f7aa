/**
 * Notices to administrators and owners, by the running program, through a real mail server and the webhook of notices:
 * a model drifts, the disk is nearly full, a webhook fails and works again. The program looks as soon as it starts; what
 * has to last for minutes or an hour is dated back in the store before that.
 */
import assert from 'node:assert/strict';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Store, statement } from '../../src/database/store.ts';
import { listOpen, recordNoticeOnce } from '../../src/notices/notice-store.ts';
import { listDriftAlarms } from '../../src/prediction/observations/drift-alarm-store.ts';
import { mountSmallDisk } from '../support/basics/small-disk.ts';
import { waitUntil } from '../support/basics/wait-until.ts';
import { findReasonToSkipMail, type SmtpServer, startSmtpServer } from '../support/mail/smtp-server.ts';
import { type Receiver, startReceiver } from '../support/network/receiver.ts';
import { observePool } from '../support/prediction/observed-pool.ts';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { createDataDir, startProgram } from '../support/programs/start-program.ts';
import { createStorePlace, findReasonToSkip, openTestStore } from '../support/store/engines.ts';

const HOUR_MS = 3_600_000;
const skip = findReasonToSkipMail();
const failEarlierSql = statement(
  'test-fail-earlier',
  'UPDATE endpoint_queue SET failing_since_ms = failing_since_ms - $1 WHERE failing_since_ms IS NOT NULL RETURNING hook_id',
);

interface Places {
  readonly dataDir: string;
  readonly smtp: SmtpServer;
  readonly chat: Receiver;
}

/** The administrator ada gets the notices by mail, and `chat` those of the service. */
async function prepareService({ dataDir, smtp, chat }: Places) {
  const env = {
    TRIVET_DATA_DIR: dataDir,
    SMTP_HOST: '127.0.0.1',
    SMTP_PORT: String(smtp.port),
    SMTP_SECURITY: 'none',
    MAIL_FROM: 't@example.org',
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    NOTICE_REPOSITORY: 'ada/notices',
    PREDICTION_LEARNING: 'false',
  };
  const trivet = async (line: string) => {
    const { code, stderr } = await runTrivet(line.split(' '), { env });
    assert.equal(code, 0, stderr);
  };
  await trivet('user create --login ada --name Ada --email ada@example.org --admin');
  await trivet('repo create ada/notices');
  await trivet(`hook create ada/notices --url ${chat.url} --events issue`);
  return { trivet, start: () => startProgram(env, dataDir) };
}

/** Title, action and labels of the newest issue that came to the webhook of notices. */
async function readIssue(chat: Receiver, count: number): Promise<string> {
  await chat.waitFor(count);
  const { object_attributes, labels } = JSON.parse(String(chat.received[count - 1]?.body)) as {
    readonly object_attributes: { readonly title: string; readonly action: string };
    readonly labels: readonly { readonly title: string }[];
  };
  const { title, action } = object_attributes;
  return [title, action, ...labels.map((label) => label.title)].join(', ');
}

async function openStoreIn(dataDir: string): Promise<Store & AsyncDisposable> {
  return await openTestStore({ dataDir, databaseUrl: undefined });
}

test('administrators receive a notice when a model drifts that had fitted', { skip }, async () => {
  await using smtp = await startSmtpServer();
  await using chat = await startReceiver();
  const dataDir = createDataDir();
  const { trivet, start } = await prepareService({ dataDir, smtp, chat });
  const rows = observePool({ rows: 300 });
  const file = join(dataDir, 'rows.jsonl');
  writeFileSync(file, rows.map((row) => toEvent(row, 1)).join('\n'));
  await trivet(`model train --model m --input ${file}`);
  await using program = await start();
  const response = await fetch(`${program.httpUrl}/observation.v1.ObservationService/ReportBatch`, {
    method: 'POST',
    headers: { 'content-type': 'application/jsonl' },
    body: [...rows.map((row) => toEvent(row, 1)), ...rows.map((row) => toEvent(row, 3))].join('\n'),
  });
  assert.equal(response.status, 200);
  await using store = await openStoreIn(dataDir);
  await waitUntil(async () => (await listDriftAlarms(store, 0)).length > 0);
  await program.stop();

  await using _again = await start();
  const { to, subject, text } = await smtp.waitForMail(1);
  assert.deepEqual([to, subject], [['ada@example.org'], 'The model m drifts']);
  assert.match(text, /\/models\/model\?name=m/);
  assert.equal(await readIssue(chat, 1), 'The model m drifts, open, model, drift');
});

function toEvent({ input, ttftMs, tpotMs }: ReturnType<typeof observePool>[number], factor: number): string {
  const times = { ttftMillis: factor * (ttftMs ?? 0), tpotMillis: factor * (tpotMs ?? 0) };
  return JSON.stringify({ observation: { targetModel: 'm', input, ...times } });
}

test('administrators receive a notice when the disk is nearly full', { skip }, async (t) => {
  const dataDir = createDataDir();
  await using undo = new AsyncDisposableStack();
  undo.defer(() => rmSync(dataDir, { recursive: true, force: true }));
  const disk = mountSmallDisk(t, dataDir, 64);
  if (disk === undefined) return;
  undo.use(disk);
  const smtp = undo.use(await startSmtpServer());
  const chat = undo.use(await startReceiver());
  const { start } = await prepareService({ dataDir, smtp, chat });
  const program = await start();
  undo.defer(() => program.kill());
  const { to, subject, text } = await smtp.waitForMail(1);
  assert.deepEqual(to, ['ada@example.org']);
  assert.match(subject, /^The disk of \S+ is nearly full$/);
  assert.ok(text.includes(dataDir) && /\d+ MiB are left/.test(text), text);
  assert.match(await readIssue(chat, 1), /^The disk of \S+ is nearly full, open, disk, full$/);
});

test('a service on PostgreSQL with SECRET_KEYS has notices without a data folder', {
  skip: findReasonToSkip('postgres'),
}, async () => {
  const { databaseUrl = '' } = await createStorePlace('postgres');
  const SECRET_KEYS = Buffer.alloc(32, 7).toString('base64');
  const parent = createDataDir();
  const dataDir = join(parent, 'none');
  const env = { DATABASE_URL: databaseUrl, SECRET_KEYS, NOTICE_REPOSITORY: 'ops/notices' };
  await using program = await startProgram(env, dataDir);
  // The first round looks at once, and a stop waits for it.
  assert.equal(await program.stop(), 0);
  assert.doesNotMatch(program.log(), /Cannot look for what needs attention/);
  assert.ok(!existsSync(dataDir));
  rmSync(parent, { recursive: true });
});

test('a notice of a disk that was sent where the database was before ends on PostgreSQL', {
  skip: findReasonToSkip('postgres'),
}, async () => {
  const { dataDir, databaseUrl = '' } = await createStorePlace('postgres');
  await using store = await openTestStore({ dataDir, databaseUrl });
  const sent = {
    channel: 'events',
    cause: 'disk:/data',
    state: 'full',
    nowMs: Date.now(),
    quietUntilMs: 0,
    statements: [],
  } as const;
  await store.call(recordNoticeOnce, sent);
  await using program = await startProgram({ DATABASE_URL: databaseUrl, NOTICE_REPOSITORY: 'ops/notices' }, dataDir);
  // The first round looks at once, and a stop waits for it.
  assert.equal(await program.stop(), 0);
  assert.deepEqual(await listOpen(store, 'events', 'disk:'), []);
});

test('the owner of a webhook receives a notice when it fails, and when it works again', { skip }, async () => {
  await using smtp = await startSmtpServer();
  await using chat = await startReceiver();
  let status = 500;
  await using receiver = await startReceiver((_, response) => void response.writeHead(status).end());
  const dataDir = createDataDir();
  const { trivet, start } = await prepareService({ dataDir, smtp, chat });
  await trivet('repo create ada/doors');
  await trivet(`hook create ada/doors --url ${receiver.url}`);
  await using first = await start();
  await trivet('event send ada/doors --sample');
  await using store = await openStoreIn(dataDir);
  await waitUntil(async () => (await store.write(failEarlierSql, [HOUR_MS])).length > 0);
  await first.stop();

  await using second = await start();
  assert.equal((await smtp.waitForMail(1)).subject, 'A webhook of ada/doors fails');
  assert.equal(await readIssue(chat, 1), 'A webhook of ada/doors fails, open, hook, failing');
  status = 200;
  await trivet('hook test ada/doors 2');
  await second.stop();

  await using _third = await start();
  assert.equal((await smtp.waitForMail(2)).subject, 'A webhook of ada/doors works again');
  assert.equal(await readIssue(chat, 2), 'A webhook of ada/doors works again, close, hook, fine');
});
