/** Writes the English mails of authorization. */
import type { Mail } from '../../mail/mail.ts';

export interface MailFacts {
  readonly name: string;
  readonly login: string;
  readonly url: string;
  /** The URL of the service. */
  readonly service: string;
}

export type MailText = Omit<Mail, 'to' | 'language'>;

function footer(service: string): string {
  return `Trivet, ${service}`;
}

export const mailMessages = {
  invitation: ({ name, login, url, service }: MailFacts): MailText => ({
    subject: `You are invited to ${service}`,
    paragraphs: [
      `Hello ${name},`,
      `an administrator created an account for you at ${service}. Your login is ${login}.`,
      'Choose a password to use it. The link works once, for 7 days.',
    ],
    link: { label: 'Choose your password', url },
    footer: footer(service),
  }),
  forgotten: ({ name, login, url, service }: MailFacts): MailText => ({
    subject: 'Choose a new password',
    paragraphs: [
      `Hello ${name},`,
      `a new password was requested for your account ${login} at ${service}.`,
      'If it was you, open this link. It works once, for one hour. If it was not you, there is nothing to do: your password stays as it is.',
    ],
    link: { label: 'Choose a new password', url },
    footer: footer(service),
  }),
  reset: ({ name, login, url, service }: MailFacts): MailText => ({
    subject: 'Choose a new password',
    paragraphs: [
      `Hello ${name},`,
      `an administrator of ${service} sends you this link to choose a new password for your account ${login}.`,
      'It works once, for 24 hours. Until then your password stays as it is.',
    ],
    link: { label: 'Choose a new password', url },
    footer: footer(service),
  }),
  changed: ({ name, login, url, service }: MailFacts): MailText => ({
    subject: 'Your password was changed',
    paragraphs: [
      `Hello ${name},`,
      `the password of your account ${login} at ${service} was changed with a link. All sessions have ended.`,
      'If it was not you, choose another password at once and tell an administrator.',
    ],
    link: { label: 'Choose another password', url },
    footer: footer(service),
  }),
  test: ({ name, service }: Pick<MailFacts, 'name' | 'service'>): MailText => ({
    subject: 'A test mail',
    paragraphs: [`Hello ${name},`, `the mail server of ${service} works.`],
    footer: footer(service),
  }),
} as const;
