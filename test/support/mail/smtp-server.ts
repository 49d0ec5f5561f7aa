/** Starts a real mail server, aiosmtpd as Debian packages it, which hands over each accepted mail. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { skipWithout } from '../basics/client-tools.ts';

export interface ReceivedMail {
  readonly from: string;
  readonly to: readonly string[];
  readonly subject: string;
  readonly messageId: string;
  readonly text: string;
  readonly html: string;
  readonly isEncrypted: boolean;
}

export interface SmtpServer {
  readonly port: number;
  /** Every mail so far. */
  readonly mails: readonly ReceivedMail[];
  /** Resolves with the last mail once this many have arrived. */
  waitForMail(count: number): Promise<ReceivedMail>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface SmtpServerOptions {
  readonly port?: number;
  /** With them, mail is taken only after STARTTLS and with the name `trivet` and the password `secret`. */
  readonly certFile?: string;
  readonly keyFile?: string;
}

const PYTHON = '/usr/bin/python3';

export function findReasonToSkipMail(): string | false {
  return skipWithout('python3-aiosmtpd', [PYTHON, '-c', 'import aiosmtpd']);
}

export async function startSmtpServer(options: SmtpServerOptions = {}): Promise<SmtpServer> {
  const child = spawn(PYTHON, ['test/support/mail/smtp-server.py', JSON.stringify(options)], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const mails: ReceivedMail[] = [];
  const lines = createInterface({ input: child.stdout });
  const first = Promise.race([once(lines, 'line'), once(child, 'exit')]);
  const [opened] = (await first) as [string | number];
  if (typeof opened !== 'string') throw new Error(`The mail server ended: ${opened}`);
  lines.on('line', (line) => {
    mails.push(JSON.parse(line) as ReceivedMail);
    lines.emit('mail');
  });
  return {
    port: (JSON.parse(opened) as { port: number }).port,
    mails,
    async waitForMail(count) {
      while (mails.length < count) await once(lines, 'mail', { signal: AbortSignal.timeout(60_000) });
      return mails[count - 1] as ReceivedMail;
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}
