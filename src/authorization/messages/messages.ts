/** Chooses the messages of authorization by the language of the reader. */
import type { Context } from 'hono';
import type { HttpEnv } from '../../http/context.ts';
import type { Locale } from '../../language/formats.ts';
import type { Language } from '../../language/language.ts';
import { type Localized, localize, type Texts } from '../../language/texts.ts';
import { readLocale } from '../../pages/locale.ts';
import { allMessages as english } from './all-messages.ts';
import { allMessagesZh as chinese } from './all-messages-zh.ts';

const catalogue: Readonly<Record<Language, Texts<typeof english>>> = { en: english, 'zh-CN': chinese };

export type Messages = Localized<Texts<typeof english>>;

export function chooseMessages(locale: Locale): Messages {
  return localize(catalogue, locale);
}

/** Returns the messages in the language and time zone of this request. */
export function readMessages(c: Context<HttpEnv>): Messages {
  return chooseMessages(readLocale(c));
}
