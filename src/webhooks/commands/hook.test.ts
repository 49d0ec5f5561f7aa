/** `trivet hook` beside a receiver, with no service up. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test } from 'node:test';
import { startReceiver } from '../../../test/support/network/receiver.ts';
import { runTrivet } from '../../../test/support/programs/run-trivet.ts';
import { checkProof } from './listen.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'trivet-hook-'));
const env = { TRIVET_DATA_DIR: dataDir, WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' };

before(async () => {
  await trivet('user', 'create', '--login', 'ada', '--name', 'Ada');
  await trivet('repo', 'create', 'ada/doors');
});
after(() => rmSync(dataDir, { recursive: true }));

async function trivet(...argv: string[]): Promise<string> {
  const ended = await runTrivet(argv, { env });
  assert.equal(ended.code, 0, ended.stderr);
  return ended.stdout.trim();
}

async function createHook(url: string, ...options: string[]): Promise<string> {
  const created = JSON.parse(await trivet('hook', 'create', 'ada/doors', '--url', url, '--json', ...options));
  return String(created.id);
}

test('hook create remarks what it assumes, and that receivers cannot verify the sender', async () => {
  const create = async (...options: string[]) =>
    (await runTrivet(['hook', 'create', 'ada/doors', '--url', 'http://127.0.0.1:9001/', ...options], { env })).stderr;
  const remarks = await create();
  assert.match(remarks, /It gets push events alone: --events names others/);
  assert.match(remarks, /cannot verify the sender: --secret KEY signs each delivery/);
  assert.doesNotMatch(await create('--events', 'push', '--secret', 's3cret'), /events alone|cannot verify/);
});

test('hook redeliver names the delivery that the webhook does not have', async () => {
  const id = await createHook('http://127.0.0.1:9001/');
  const { code, stderr } = await runTrivet(['hook', 'redeliver', 'ada/doors', id, '17'], { env });
  assert.equal(code, 1);
  assert.match(stderr, /Delivery not found: the webhook has no delivery 17/);
});

test('an update changes what it names and keeps the rest', async () => {
  const id = await createHook('http://127.0.0.1:9001/', '--password', 'pw', '--events', 'issue');
  const update = async (...options: string[]) =>
    JSON.parse(await trivet('hook', 'update', 'ada/doors', id, '--json', ...options));
  const changed = await update('--events', 'push,note', '--sign', '--profile', 'github');
  const { url, password, encryption_type, profile, push_events, issues_events, note_events } = changed;
  assert.deepEqual([url, password, encryption_type, profile], ['http://127.0.0.1:9001/', 'pw', 1, 'github']);
  assert.deepEqual([push_events, issues_events, note_events], [true, false, true]);
  const moved = await update('--url', 'http://127.0.0.1:9002/', '--no-sign', '--password', 'new');
  const expected = { ...changed, url: 'http://127.0.0.1:9002/', encryption_type: 0, password: 'new' };
  assert.deepEqual(moved, expected);
  assert.deepEqual(await update('--no-password'), { ...expected, password: '' });
});

test('--secret means a password that signs, and --no-secret takes it away', async () => {
  const id = await createHook('http://127.0.0.1:9001/', '--secret', 'key');
  const show = async () => {
    const { password, encryption_type } = JSON.parse(await trivet('hook', 'show', 'ada/doors', id, '--json'));
    return [password, encryption_type];
  };
  assert.deepEqual(await show(), ['key', 1]);
  await trivet('hook', 'update', 'ada/doors', id, '--password', 'word', '--no-sign');
  assert.deepEqual(await show(), ['word', 0]);
  await trivet('hook', 'update', 'ada/doors', id, '--secret', 'other');
  assert.deepEqual(await show(), ['other', 1]);
  await trivet('hook', 'update', 'ada/doors', id, '--no-secret');
  assert.deepEqual(await show(), ['', 1]);
});

const LAST_WORDS: [options: string, password: string][] = [
  ['--no-secret --password new', 'new'],
  ['--no-password --password new', 'new'],
  ['--password new --no-secret', ''],
  ['--password new --no-password', ''],
  ['--no-password --secret new', 'new'],
  ['--secret new --no-password', ''],
  ['--secret other --no-secret --password new', 'new'],
  ['--password other --no-secret --secret new', 'new'],
];
for (const [options, password] of LAST_WORDS)
  test(`hook update ${options} leaves the password "${password}": the last of them counts`, async () => {
    const id = await createHook('http://127.0.0.1:9001/', '--secret', 'key');
    const updated = await trivet('hook', 'update', 'ada/doors', id, ...options.split(' '), '--json');
    assert.equal(JSON.parse(updated).password, password);
  });

test('deliveries are listed by their kind of event and time', async () => {
  const id = await createHook('http://127.0.0.1:9001/', '--events', 'push,issue');
  for (const kind of ['push', 'issue']) await trivet('event', 'send', 'ada/doors', '--event', kind, '--sample');
  const list = async (...options: string[]) => {
    const text = await trivet('hook', 'deliveries', 'ada/doors', id, '--json', ...options);
    return text === '' ? [] : text.split('\n').map((line) => JSON.parse(line).event);
  };
  assert.deepEqual(await list('--since', '1h'), ['issue', 'push']);
  assert.deepEqual(await list('--event', 'issue'), ['issue']);
  assert.deepEqual(await list('--until', '1h'), []);
  await trivet('hook', 'delete', 'ada/doors', id);
});

test('hook test sends an event that the webhook gets, or the one that is asked for', async () => {
  await using receiver = await startReceiver();
  const id = await createHook(receiver.url, '--events', 'issue,note');
  const test = (...options: string[]) => runTrivet(['hook', 'test', 'ada/doors', id, ...options], { env });
  for (const options of [[], ['--event', 'note']]) assert.equal((await test(...options)).code, 0);
  const kinds = receiver.received.map(({ headers }) => headers['x-gitcode-event']);
  assert.deepEqual(kinds, ['Issue Hook', 'Note Hook']);
  const refused = await test('--event', 'push');
  assert.deepEqual([refused.code, receiver.received.length], [2, 2]);
  assert.match(refused.stderr, /event must be one that it is subscribed to \(issue, note\), got "push"/);
  assert.match((await test('--event', 'pull')).stderr, /Allowed choices are push, .*, notice/);
  await trivet('hook', 'delete', 'ada/doors', id);
});

test('one delivery is shown with its attempts, by its id or by the UUID that the receiver saw', async () => {
  await using receiver = await startReceiver((_, response) => void response.writeHead(503).end('not today'));
  const id = await createHook(receiver.url);
  await runTrivet(['hook', 'test', 'ada/doors', id], { env });
  const uuid = String(receiver.received[0]?.headers['x-gitcode-delivery']);
  const shown = await trivet('hook', 'deliveries', 'ada/doors', id, '--delivery', uuid);
  assert.match(shown, new RegExp(`as the receiver sees it +${uuid}`));
  assert.match(shown, /^state +dead$/m);
  assert.match(shown, /^ +1 +\S+ +refused +503 +\d+ +not today$/m);
  const detail = JSON.parse(await trivet('hook', 'deliveries', 'ada/doors', id, '--delivery', uuid, '--json'));
  assert.equal(await trivet('hook', 'deliveries', 'ada/doors', id, '--delivery', String(detail.id)), shown);
  assert.equal(detail.attempt_log[0].response_body, 'not today');
  const facts = await trivet('hook', 'show', 'ada/doors', id);
  assert.match(facts, /^failing since +\d{4}-\d\d-\d\dT\S+Z$/m);
  assert.match(facts, /^failed attempts +1$/m);
  using database = new DatabaseSync(join(dataDir, 'trivet.db'), { readOnly: true });
  const [counted] = database.prepare('SELECT SUM(failed) AS failed FROM delivery_minutes').all();
  assert.ok(Number(counted?.failed) >= 1, 'the overview counts it');
  assert.equal(
    await trivet('hook', 'send-waiting', 'ada/doors', id),
    `0 waiting deliveries of webhook ${id} will be sent now`,
  );
});

test('after a change of the key, trivet listen takes the former key by webhook-signature, and no other', async () => {
  await using receiver = await startReceiver();
  for (const profile of ['gitcode', 'gitee', 'github', 'gitlab']) {
    const id = await createHook(receiver.url, '--sign', '--password', 'former', '--profile', profile);
    await trivet('hook', 'update', 'ada/doors', id, '--password', 'new');
    await trivet('hook', 'test', 'ada/doors', id);
    const { headers, body } = receiver.received.at(-1)!;
    const check = (secret: string) => checkProof(headers, body, { secret });
    assert.deepEqual(check('new'), { isRefused: false, text: 'signature ok' }, profile);
    assert.match(
      check('former').text,
      profile === 'gitlab' ? /^signature ok$/ : /^signature ok, by a former key/,
      profile,
    );
    assert.deepEqual(check('other'), { isRefused: true, text: 'wrong signature' }, profile);
  }
});

test('a hook that the receiver ended is enabled again, and what had failed is sent again', async () => {
  await using receiver = await startReceiver((_, response) => {
    response.statusCode = 410;
    response.end();
  });
  const id = await createHook(receiver.url);
  await trivet('event', 'send', 'ada/doors', '--kind', 'push', '--sample');
  const [delivery] = (await trivet('hook', 'deliveries', 'ada/doors', id, '--json'))
    .split('\n')
    .map((line) => JSON.parse(line));
  const ended = await runTrivet(['hook', 'redeliver', 'ada/doors', id, String(delivery.id)], { env });
  assert.equal(ended.code, 1, ended.stdout);
  const show = async () => {
    const hooks = (await trivet('hook', 'list', 'ada/doors', '--json')).split('\n').map((line) => JSON.parse(line));
    return hooks.find((hook) => String(hook.id) === id);
  };
  assert.deepEqual([(await show()).active, (await show()).disabled_reason], [false, 'The receiver answered 410 Gone']);
  assert.equal(await trivet('hook', 'enable', 'ada/doors', id), `Webhook ${id} of ada/doors is on`);
  assert.equal((await show()).active, true);
  const replay = (since: string) => trivet('hook', 'replay', 'ada/doors', id, '--since', since);
  assert.equal(await replay('0s'), `0 deliveries of webhook ${id} will be sent again`);
  assert.equal(await replay('2999-01-01T00:00:00Z'), `0 deliveries of webhook ${id} will be sent again`);
  assert.equal(await replay('2026-01-01T00:00:00+08:00'), `1 delivery of webhook ${id} will be sent again`);
  const [again] = (await trivet('hook', 'deliveries', 'ada/doors', id, '--json'))
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.equal(again.state, 'pending');
  assert.equal(await trivet('hook', 'disable', 'ada/doors', id), `Webhook ${id} of ada/doors is off`);
  assert.equal((await show()).active, false);
});

/** Control sequences that clear the screen, in both encodings, and a right-to-left override. */
const ORDERS = '\u001b[2J\u009b2J\u202e';
const SHOWN = '\\u001b[2J\\u009b2J\\u202e';

test('control sequences in the answer of a receiver do not reach the terminal', async () => {
  await using receiver = await startReceiver((_, response) => void response.writeHead(500).end(`Sorry\n${ORDERS}`));
  const id = await createHook(receiver.url);
  const { stderr } = await runTrivet(['hook', 'test', 'ada/doors', id], { env });
  assert.ok(stderr.includes(`Sorry\n${SHOWN}`), JSON.stringify(stderr));
  const listed = await trivet('hook', 'list', 'ada/doors', '--json');
  const own = listed.split('\n').map((line) => JSON.parse(line));
  assert.equal(own.find((hook) => String(hook.id) === id).result, `Sorry\n${ORDERS}`, 'the JSON means the same');
  for (const text of [stderr, listed]) assert.doesNotMatch(text, /(?!\n)\p{Cc}|\p{Bidi_Control}/u);
});

test('an unknown webhook is refused with those that there are', async () => {
  await trivet('repo', 'create', 'ada/windows');
  const show = async () => (await runTrivet(['hook', 'show', 'ada/windows', '99'], { env })).stderr.trim();
  assert.equal(await show(), 'Webhook not found: ada/windows has no 99, it has no webhook');
  const made = await trivet('hook', 'create', 'ada/windows', '--url', 'https://1.1.1.1/', '--json');
  assert.equal(await show(), `Webhook not found: ada/windows has no 99, it has ${JSON.parse(made).id}`);
});

const mistakes: [argv: string, message: RegExp][] = [
  ['hook update ada/doors 1', /^Cannot update the webhook: nothing to change is named/],
  ['hook update ada/doors 1 --events push,pull', /--events must be of push, .*, got "pull"/],
  ['hook update ada/doors 1 --password=', /--password must not be empty, --no-password takes it away/],
  ['hook create ada/doors --url https://example.com/ --sign', /--sign needs --password, the key of the signature/],
  ['hook create ada/doors --url https://example.com/ --sign --password=', /--sign needs --password/],
  ['hook deliveries ada/doors 1 --delivery 01a2', /delivery_id must be a whole number or a UUID, got "01a2"/],
  ['hook update ada/doors x --sign', /the id must be a whole number, got "x"/],
  ['hook update ada/doors 1 --profile gitcoda', /profile must be one of gitcode, gitee, github, gitlab, got "gitcoda"/],
  [
    'hook replay ada/doors 1 --since yesterday',
    /'yesterday' is invalid\. it must be how long ago, as a duration such as/,
  ],
  ['hook deliveries ada/doors 1 --since 1', /it must be how long ago, as a duration such as/],
  ['hook deliveries ada/doors 1 --event pull', /event must be one of push, /],
  ['hook create ada/doors --url https://example.com/ --secret=', /--secret must not be empty/],
  [
    'hook create ada/doors --url https://example.com/ --secret k --password p',
    /--secret and --password must not be used/,
  ],
  ['hook update ada/doors 1 --no-secret --secret k --password p', /--secret and --password must not be used/],
  ['listen --sign', /^Cannot listen: --sign needs --password, the key of the signature/],
  ['listen --sign --password=', /--sign needs --password/],
  ['hook update ada/doors 1 --secret k --no-sign', /--secret and --no-sign must not be used together/],
];
for (const [argv, message] of mistakes)
  test(`trivet ${argv} says what is wrong`, async () => {
    const ended = await runTrivet(argv.split(' '), { env });
    assert.equal(ended.code, 2, ended.stdout);
    assert.match(ended.stderr, message);
  });

const ADVICE: [url: string, reason: RegExp, advice: RegExp | undefined][] = [
  ['ftp://example.com/', /must be http or https, got "ftp"/, undefined],
  ['http://example.com:22/', /must use port 80, 443/, undefined],
  ['http://user@example.com/', /must not contain a user name/, undefined],
  ['http://10.0.0.1/', /must not be a private or reserved address/, /set WEBHOOK_ALLOW_CIDRS for the service/],
  ['http://jenkins:8080/', /must name its host with a domain/, /set WEBHOOK_ALLOW_CIDRS and WEBHOOK_ALLOW_HOSTS/],
  ['http://localhost:8080/', /must not be localhost/, /Write 127\.0\.0\.1 instead/],
];
for (const [url, reason, advice] of ADVICE)
  test(`hook create says what is wrong with ${url}, and which setting helps when one does`, async () => {
    const ended = await runTrivet(['hook', 'create', 'ada/doors', '--url', url], { env });
    assert.equal(ended.code, 2);
    assert.match(ended.stderr, reason);
    if (advice === undefined) assert.doesNotMatch(ended.stderr, /WEBHOOK_ALLOW/);
    else assert.match(ended.stderr, advice);
  });
