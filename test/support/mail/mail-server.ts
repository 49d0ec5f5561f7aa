/** Starts pages with a real mail server, and reads the mails that the service sends to it. */
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { verifyEmail } from '../../../src/authorization/accounts/email-store.ts';
import { findUserByLogin, type User } from '../../../src/authorization/accounts/user-store.ts';
import { parseConfig } from '../../../src/config/config.ts';
import { sendDueMails } from '../../../src/mail/mail-worker.ts';
import { openSmtp } from '../../../src/mail/smtp.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { addUser, type PageService } from '../pages/page-service.ts';
import { type ReceivedMail, startSmtpServer } from './smtp-server.ts';

export interface MailServer {
  /** Sends what is due. Returns the mails that were caused since the last call. */
  readonly readMails: (service: PageService) => Promise<readonly ReceivedMail[]>;
}

/** A mail server until the tests of this file or suite have ended. */
export async function useMailServer(): Promise<MailServer> {
  const server = await startSmtpServer();
  after(() => server[Symbol.asyncDispose]());
  const settings = {
    SMTP_HOST: '127.0.0.1',
    SMTP_PORT: String(server.port),
    SMTP_SECURITY: 'none',
    MAIL_FROM: 't@a.b',
  };
  const smtp = openSmtp(parseConfig(settings).mail)!;
  const log = createLog('silent');
  return {
    readMails: async ({ store, cipher, world }) => {
      const before = server.mails.length;
      const trusting = { ...world, isClockTrusted: () => true };
      await sendDueMails({ store, cipher, world: trusting, log, smtp }, new AbortController().signal);
      return server.mails.slice(before);
    },
  };
}

/** Creates a person with the verified address LOGIN@example.org. */
export async function addVerifiedUser(service: PageService, login: string): Promise<User> {
  const user = await addUser(service, login);
  await verifyEmail(service.store, { userId: user.id, email: `${login}@example.org`, statements: [] });
  return (await findUserByLogin(service.store, login))!;
}

/** The path of the link in a mail that lets a person choose a password. */
export function readPasswordLink(mail: { readonly text: string } | undefined, { url }: PageService): string {
  const [, path] = new RegExp(`${url}(/password\\?token=[\\w-]+)`).exec(mail?.text ?? '') ?? [];
  assert.ok(path, mail?.text);
  return path;
}
