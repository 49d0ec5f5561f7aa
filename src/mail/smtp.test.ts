/** `openSmtp()` against mail servers that become slow, silent or unreachable at some step. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { parseConfig } from '../config/config.ts';
import type { Mail } from './mail.ts';
import { LIMITS, openSmtp, type SmtpLimits } from './smtp.ts';

const mail: Mail = { to: 'ada@example.org', subject: 'Hello', paragraphs: ['Hello Ada,'], footer: 'Trivet' };

interface Script {
  /** The replies to a command or to the dot that ends the content; no reply if it returns none. */
  readonly reply: (line: string) => string | undefined;
}

const KIND: Readonly<Record<string, string>> = { DATA: '354 Go on', QUIT: '221 Bye' };

/** A server that accepts every mail, except as the script says for one line. */
async function startServer(t: TestContext, { reply }: Script) {
  const content = Promise.withResolvers<Socket>();
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.write('220 Hello\r\n');
    let isContent = false;
    createInterface({ input: socket }).on('line', (line) => {
      if (isContent && line !== '.') return;
      isContent = line === 'DATA';
      if (line === '.') content.resolve(socket);
      const said = reply(line) ?? KIND[line] ?? '250 OK';
      if (said !== '') socket.write(`${said}\r\n`);
    });
  }).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, content: content.promise };
}

function openTestSmtp(port: number, limits: Partial<SmtpLimits> = {}) {
  const settings = {
    SMTP_HOST: '127.0.0.1',
    SMTP_PORT: String(port),
    SMTP_SECURITY: 'none',
    MAIL_FROM: 't@example.org',
  };
  return openSmtp(parseConfig(settings).mail, { ...LIMITS, ...limits })!;
}

const silentAt = (line: string): Script => ({ reply: (given) => (given.startsWith(line) ? '' : undefined) });

test('openSmtp() waits for the reply to the content as long as RFC 5321 §4.5.3.2.6 says', () => {
  assert.equal(LIMITS.replyMs, 10 * 60_000);
});

test('openSmtp() waits for the reply to the content longer than for all before it', async (t) => {
  const slow = await startServer(t, silentAt('.'));
  const silent = await startServer(t, silentAt('EHLO'));
  const untilSentMs = 300;
  const sending = openTestSmtp(slow.port, { untilSentMs }).send(mail, 'one');
  const socket = await slow.content;
  // This attempt begins later, so that the limit of the first has passed too when it fails.
  await assert.rejects(openTestSmtp(silent.port, { untilSentMs }).send(mail, 'two'), {
    message: /did not take the mail within 0\.3 s/,
    details: { isFinal: false },
  });
  socket.write('250 Taken\r\n');
  await sending;
});

test('openSmtp() gives up a server that never replies to the content', async (t) => {
  const { port } = await startServer(t, silentAt('.'));
  await assert.rejects(openTestSmtp(port, { replyMs: 100 }).send(mail, 'one'), {
    code: 'unavailable',
    details: { isFinal: false },
  });
});

for (const line of ['EHLO', '.'])
  test(`openSmtp() ends an attempt soon after the signal, also while it waits for the reply to "${line}"`, async (t) => {
    const { port } = await startServer(t, silentAt(line));
    const stopping = new AbortController();
    const sending = openTestSmtp(port, { stopMs: 50 }).send(mail, 'one', stopping.signal);
    stopping.abort();
    await assert.rejects(sending, { message: /the service stops/, details: { isFinal: false } });
  });

test('openSmtp() ends an attempt that the server answers soon after the signal as usual', async (t) => {
  const { port, content } = await startServer(t, silentAt('.'));
  const stopping = new AbortController();
  const sending = openTestSmtp(port).send(mail, 'one', stopping.signal);
  const socket = await content;
  stopping.abort();
  socket.write('250 Taken\r\n');
  await sending;
});

const refusals: [line: string, isFinal: boolean][] = [
  ['MAIL', false],
  ['RCPT', true],
  ['.', true],
];
for (const [line, isFinal] of refusals)
  test(`openSmtp() takes 550 to ${line} for ${isFinal ? 'final' : 'a fault that passes'}`, async (t) => {
    const { port } = await startServer(t, { reply: (given) => (given.startsWith(line) ? '550 No' : undefined) });
    await assert.rejects(openTestSmtp(port).send(mail, 'one'), { details: { isFinal } });
  });
