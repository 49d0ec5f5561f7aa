/** Chooses the language of a mail by its reader. */
import { DEFAULT_LANGUAGE, findLanguage, type Language } from '../../language/language.ts';
import type { Mail } from '../../mail/mail.ts';
import { mailMessages as english, type MailFacts } from './mail-messages.ts';
import { mailMessagesZh as chinese } from './mail-messages-zh.ts';

type MailMessages = typeof english;

const catalogue: Readonly<Record<Language, MailMessages>> = { en: english, 'zh-CN': chinese };

/** Writes the mail in this language; null means English. */
export function writeMail(language: string | null, name: keyof MailMessages, facts: MailFacts): Omit<Mail, 'to'> {
  const known = findLanguage(language) ?? DEFAULT_LANGUAGE;
  return { ...catalogue[known][name](facts), language: known };
}
